#include "sim/program/program_text.h"

#include <fmt/format.h>

#include <iterator>

#include "sim/base/units_text.h"
#include "sim/program/program_words.h"

namespace sim::program {

namespace {

std::string exact(Bytes bytes) {
  std::string text = to_text_exact(bytes);
  std::erase(text, ' ');
  return text;
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      fmt::format_to(std::back_inserter(result), "\\x{:02x}", c);
    } else {
      result += c;
    }
  }
  return result + '"';
}

// " scope s3", or nothing for an invalid id.
template <class IdType>
std::string reference(std::string_view word, char letter, IdType id) {
  return id.valid() ? fmt::format(" {} {}{}", word, letter, id.value) : std::string{};
}

std::string type_text(const TensorType& type) {
  std::string text = fmt::format(" {}[", to_text(type.dtype));
  for (int i = 0; i < type.shape.rank; ++i) {
    fmt::format_to(std::back_inserter(text), "{}{}", i > 0 ? "," : "", type.shape[i]);
  }
  return text + ']';
}

std::string tensor_text(const TensorInfo& info) {
  std::string text = fmt::format("{} {}", exact(info.bytes), to_text(info.memory_class));
  if (info.on_failure == OnFailure::warn) {
    text += info.warning.valid() ? fmt::format(" warn m{}", info.warning.value) : " warn";
  }
  return text + reference("scope", 's', info.scope) + reference("label", 'l', info.label) +
         reference("saved_by", 'l', info.saved_by);
}

std::string kernel_text(const compute::Kernel& kernel) {
  std::string text(kernel.kind->name);
  for (const TensorType& type : kernel.in) text += type_text(type);
  text += " ->";
  for (const TensorType& type : kernel.out) text += type_text(type);
  if (kernel.tf32) text += " tf32";
  if (kernel.causal) text += " causal";
  return text;
}

std::string collective_text(const CollectiveCall& call) {
  return fmt::format("{} group {} {}{}", to_text(call.kind), call.group.value, exact(call.bytes),
                     reference("scope", 's', call.scope));
}

std::string buffer_text(const HostBuffer& buffer) {
  return fmt::format("{} {}{}{}", to_text(buffer.kind), exact(buffer.bytes),
                     reference("scope", 's', buffer.scope), reference("label", 'l', buffer.label));
}

std::string external_text(const ExternalMemory& memory) {
  return exact(memory.bytes) + reference("label", 'l', memory.label);
}

// What an op does; a comment says what its operand is, for the reader's sake.
struct OpText {
  const Program& program;

  std::string operator()(const Alloc& op) const {
    return fmt::format("alloc t{}", op.tensor.value);
  }
  std::string operator()(const Free& op) const { return fmt::format("free t{}", op.tensor.value); }
  std::string operator()(const RecordStream& op) const {
    return fmt::format("record_stream t{} {}", op.tensor.value, to_text(op.used_on));
  }
  std::string operator()(const Launch& op) const {
    return fmt::format("launch k{}", op.kernel.value);
  }
  std::string operator()(const Collective& op) const {
    return fmt::format("call c{}", op.call.value);
  }
  std::string operator()(const Copy& op) const {
    return fmt::format("copy {}KiB {}{}{}{}", op.bytes_kib, to_text(op.direction),
                       op.blocking ? " blocking" : "", op.pinned ? " pinned" : "",
                       reference("from", 't', op.source));
  }
  std::string operator()(const HostWork& op) const {
    return fmt::format("host_work {}ps", op.duration.count());
  }
  std::string operator()(const HostAlloc& op) const {
    return fmt::format("host_alloc b{}", op.buffer.value);
  }
  std::string operator()(const HostFree& op) const {
    return fmt::format("host_free b{}", op.buffer.value);
  }
  std::string operator()(const EmptyCache&) const { return "empty_cache"; }
  std::string operator()(const ExternalAlloc& op) const {
    return fmt::format("external_alloc x{}", op.memory.value);
  }
  std::string operator()(const ExternalFree& op) const {
    return fmt::format("external_free x{}", op.memory.value);
  }
  std::string operator()(const RecordEvent& op) const {
    return fmt::format("record_event e{}", op.event.value);
  }
  std::string operator()(const WaitEvent& op) const {
    return fmt::format("wait_event e{}", op.event.value);
  }
  std::string operator()(const Synchronize& op) const {
    return op.event.valid() ? fmt::format("synchronize e{}", op.event.value) : "synchronize";
  }
  std::string operator()(const BeginPhase& op) const {
    return fmt::format("begin_phase p{}", op.phase.value);
  }
  std::string operator()(const Loop& op) const {
    return fmt::format("loop {} times {}", op.ops, op.times);
  }
};

// For the reader's sake: what stands behind an op's id. Never has a line break.
struct OpComment {
  const Program& program;

  std::string operator()(const Alloc& op) const {
    const TensorInfo& info = program.tensors[op.tensor];
    std::string text = fmt::format("  # {}", to_text(info.bytes));
    if (info.label.valid()) text += ' ' + quoted(program.labels[info.label]);
    return text;
  }
  std::string operator()(const Launch& op) const {
    return fmt::format("  # {}", program.kernels[op.kernel].kind->name);
  }
  std::string operator()(const Collective& op) const {
    const CollectiveCall& call = program.collectives[op.call];
    return fmt::format("  # {} {}", to_text(call.kind), to_text(call.bytes));
  }
  std::string operator()(const BeginPhase& op) const {
    return fmt::format("  # {}", quoted(program.phases[op.phase]));
  }
  template <class Other>
  std::string operator()(const Other&) const {
    return {};
  }
};

template <class Table, class ToText>
void add_table(std::string& text, std::string_view word, char letter, const Table& table,
               ToText to_line) {
  std::uint32_t id = 0;
  for (const auto& entry : table) {
    fmt::format_to(std::back_inserter(text), "{} {}{} {}\n", word, letter, id++, to_line(entry));
  }
}

}  // namespace

std::string to_text(const Program& program) {
  std::string text;
  add_table(text, "scope", 's', program.scopes, quoted);
  add_table(text, "label", 'l', program.labels, quoted);
  add_table(text, "message", 'm', program.messages, quoted);
  add_table(text, "phase", 'p', program.phases, quoted);
  if (program.events > 0) text += fmt::format("events {}\n", program.events);
  text += fmt::format("crash_message {}\n", quoted(program.crash_message));
  add_table(text, "tensor", 't', program.tensors, tensor_text);
  add_table(text, "kernel", 'k', program.kernels, kernel_text);
  add_table(text, "collective", 'c', program.collectives, collective_text);
  add_table(text, "buffer", 'b', program.host_buffers, buffer_text);
  add_table(text, "external", 'x', program.externals, external_text);
  ScopeId scope;
  for (const Op& op : program.ops) {
    if (op.scope != scope && op.scope.valid()) {
      text += fmt::format("# {}\n", quoted(program.scopes[op.scope]));
    }
    scope = op.scope;
    text += std::visit(OpText{program}, op.body);
    if (op.stream != StreamRole::compute) text += fmt::format(" on {}", to_text(op.stream));
    text += reference("in", 's', op.scope);
    text += std::visit(OpComment{program}, op.body);
    text += '\n';
  }
  return text;
}

}  // namespace sim::program
