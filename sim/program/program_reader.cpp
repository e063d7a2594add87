// The text form, read back: one reader per statement, found by its first word.
#include <algorithm>
#include <iterator>

#include "sim/program/program_line.h"
#include "sim/program/program_text.h"
#include "sim/program/program_words.h"

namespace sim::program {

namespace {

using Line = ProgramLine;

template <class IdType, class Table>
IdType id_in(Line& line, char letter, const Table& table) {
  return IdType{line.id(letter, table.size())};
}
// An id after `word`, or an invalid one where the word is not there.
template <class IdType, class Table>
IdType id_after(Line& line, std::string_view word, char letter, const Table& table) {
  return line.accept(word) ? id_in<IdType>(line, letter, table) : IdType{};
}
EventId event_in(Line& line, const Program& program) {
  return EventId{line.id('e', program.events)};
}

template <class Table>
void read_name(Line& line, char letter, Table& table) {
  line.new_id(letter, table.size());
  table.push_back(line.quoted("the text"));
}

void read_tensor(Line& line, Program& program) {
  line.new_id('t', program.tensors.size());
  TensorInfo info;
  info.bytes = line.bytes();
  info.memory_class = line.choice<MemoryClass>("memory class", kMemoryClasses, sim::to_text);
  if (line.accept("warn")) {
    info.on_failure = OnFailure::warn;
    if (line.peek().starts_with('m')) info.warning = id_in<MessageId>(line, 'm', program.messages);
  }
  info.scope = id_after<ScopeId>(line, "scope", 's', program.scopes);
  info.label = id_after<LabelId>(line, "label", 'l', program.labels);
  info.saved_by = id_after<LabelId>(line, "saved_by", 'l', program.labels);
  program.tensors.push_back(info);
}

void read_kernel(Line& line, Program& program) {
  line.new_id('k', program.kernels.size());
  compute::Kernel kernel;
  const auto kinds = compute::kernel_catalog().entries();
  const int kind = line.index_of("kernel kind", compute::kernel_catalog().names());
  kernel.kind = kinds[static_cast<std::size_t>(kind)];
  while (!line.failed() && !line.accept("->")) kernel.in.push_back(line.tensor_type());
  while (line.peek().ends_with(']')) kernel.out.push_back(line.tensor_type());
  if (!line.failed() && !compute::has_least_operands(kernel)) {
    line.fail("operands are missing or have too few dimensions");
  }
  kernel.tf32 = line.accept("tf32");
  kernel.causal = line.accept("causal");
  program.kernels.push_back(std::move(kernel));
}

void read_collective(Line& line, Program& program) {
  line.new_id('c', program.collectives.size());
  CollectiveCall call;
  call.kind = line.choice<CollectiveKind>("collective", 6, sim::to_text);
  line.expect("group");
  call.group = GroupId{line.number("a group's number")};
  call.bytes = line.bytes();
  call.scope = id_after<ScopeId>(line, "scope", 's', program.scopes);
  program.collectives.push_back(call);
}

void read_buffer(Line& line, Program& program) {
  line.new_id('b', program.host_buffers.size());
  HostBuffer buffer;
  buffer.kind = line.choice<HostMemoryKind>("kind of host memory", 3, sim::to_text);
  buffer.bytes = line.bytes();
  buffer.scope = id_after<ScopeId>(line, "scope", 's', program.scopes);
  buffer.label = id_after<LabelId>(line, "label", 'l', program.labels);
  program.host_buffers.push_back(buffer);
}

void read_external(Line& line, Program& program) {
  line.new_id('x', program.externals.size());
  ExternalMemory memory;
  memory.bytes = line.bytes();
  memory.label = id_after<LabelId>(line, "label", 'l', program.labels);
  program.externals.push_back(memory);
}

Body read_copy(Line& line, const Program& program) {
  Copy copy{};
  const Bytes bytes = line.bytes();
  if (bytes.count / 1024 > std::int64_t{0xffffffff}) line.fail("a copy is at most 4 TiB");
  copy.bytes_kib = static_cast<std::uint32_t>((bytes.count + 1023) / 1024);
  copy.direction = line.choice<CopyDirection>("direction", kCopyDirections, to_text);
  copy.blocking = line.accept("blocking");
  copy.pinned = line.accept("pinned");
  copy.source = id_after<TensorId>(line, "from", 't', program.tensors);
  return copy;
}

Body read_loop(Line& line, const Program&) {
  Loop loop{};
  loop.ops = line.number("a number of ops");
  line.expect("times");
  loop.times = line.number("a number of times");
  return loop;
}

StreamRole read_stream(Line& line) {
  return line.choice<StreamRole>("stream", kStreamRoles, sim::to_text);
}

struct Declaration {
  std::string_view word;
  void (*read)(Line&, Program&);
};
constexpr Declaration kDeclarations[] = {
    {"scope", [](Line& l, Program& p) { read_name(l, 's', p.scopes); }},
    {"label", [](Line& l, Program& p) { read_name(l, 'l', p.labels); }},
    {"message", [](Line& l, Program& p) { read_name(l, 'm', p.messages); }},
    {"phase", [](Line& l, Program& p) { read_name(l, 'p', p.phases); }},
    {"events", [](Line& l, Program& p) { p.events = l.number("a number of events"); }},
    {"crash_message", [](Line& l, Program& p) { p.crash_message = l.quoted("the message"); }},
    {"tensor", read_tensor},
    {"kernel", read_kernel},
    {"collective", read_collective},
    {"buffer", read_buffer},
    {"external", read_external},
};

struct OpReader {
  std::string_view word;
  Body (*read)(Line&, const Program&);
};
constexpr OpReader kOps[] = {
    {"alloc",
     [](Line& l, const Program& p) -> Body { return Alloc{id_in<TensorId>(l, 't', p.tensors)}; }},
    {"free",
     [](Line& l, const Program& p) -> Body { return Free{id_in<TensorId>(l, 't', p.tensors)}; }},
    {"record_stream",
     [](Line& l, const Program& p) -> Body {
       const auto tensor = id_in<TensorId>(l, 't', p.tensors);
       return RecordStream{tensor, read_stream(l)};
     }},
    {"launch",
     [](Line& l, const Program& p) -> Body { return Launch{id_in<KernelId>(l, 'k', p.kernels)}; }},
    {"call",
     [](Line& l, const Program& p) -> Body {
       return Collective{id_in<CollectiveId>(l, 'c', p.collectives)};
     }},
    {"copy", read_copy},
    {"host_work", [](Line& l, const Program&) -> Body { return HostWork{l.duration()}; }},
    {"host_alloc",
     [](Line& l, const Program& p) -> Body {
       return HostAlloc{id_in<HostBufferId>(l, 'b', p.host_buffers)};
     }},
    {"host_free",
     [](Line& l, const Program& p) -> Body {
       return HostFree{id_in<HostBufferId>(l, 'b', p.host_buffers)};
     }},
    {"empty_cache", [](Line&, const Program&) -> Body { return EmptyCache{}; }},
    {"external_alloc",
     [](Line& l, const Program& p) -> Body {
       return ExternalAlloc{id_in<ExternalId>(l, 'x', p.externals)};
     }},
    {"external_free",
     [](Line& l, const Program& p) -> Body {
       return ExternalFree{id_in<ExternalId>(l, 'x', p.externals)};
     }},
    {"record_event", [](Line& l, const Program& p) -> Body { return RecordEvent{event_in(l, p)}; }},
    {"wait_event", [](Line& l, const Program& p) -> Body { return WaitEvent{event_in(l, p)}; }},
    {"synchronize",
     [](Line& l, const Program& p) -> Body {
       return Synchronize{l.peek().starts_with('e') ? event_in(l, p) : EventId{}};
     }},
    {"begin_phase",
     [](Line& l, const Program& p) -> Body {
       return BeginPhase{id_in<PhaseId>(l, 'p', p.phases)};
     }},
    {"loop", read_loop},
};

void refuse(Line& line) {
  std::vector<std::string> words;
  for (const Declaration& declaration : kDeclarations) words.emplace_back(declaration.word);
  for (const OpReader& op : kOps) words.emplace_back(op.word);
  line.index_of("statement", words);
}

void read_statement(Line& line, Program& program) {
  const auto declaration = std::find_if(std::begin(kDeclarations), std::end(kDeclarations),
                                        [&](const auto& d) { return line.accept(d.word); });
  if (declaration != std::end(kDeclarations)) {
    declaration->read(line, program);
    line.end();
    return;
  }
  const auto reader = std::find_if(std::begin(kOps), std::end(kOps),
                                   [&](const auto& op) { return line.accept(op.word); });
  if (reader == std::end(kOps)) return refuse(line);
  Op op;
  op.body = reader->read(line, program);
  if (line.accept("on")) op.stream = read_stream(line);
  op.scope = id_after<ScopeId>(line, "in", 's', program.scopes);
  program.ops.push_back(op);
  line.end();
}

}  // namespace

std::optional<Program> parse_program(std::shared_ptr<const SourceFile> file,
                                     Diagnostics& diagnostics) {
  const std::size_t errors = diagnostics.error_count();
  Program program;
  std::string_view rest = file->text;
  for (int number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    ProgramLine line(file, number, rest.substr(0, end), diagnostics);
    if (!line.empty() && !line.failed()) read_statement(line, program);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (diagnostics.error_count() > errors) return std::nullopt;
  return program;
}

}  // namespace sim::program
