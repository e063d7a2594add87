#include "sim/program/program_text.h"

#include "sim/compute/kernels/kinds.h"
#include "tests/support/catch.h"

namespace sim::program {
namespace {

std::shared_ptr<const SourceFile> file_of(std::string text) {
  return std::make_shared<SourceFile>(SourceFile{"a.program", std::move(text)});
}

std::optional<Program> parse(const std::string& text, Diagnostics& diagnostics) {
  return parse_program(file_of(text), diagnostics);
}

// One of everything.
Program full_program() {
  Program p;
  const ScopeId scope = p.scopes.push_back("model.layers.0");
  const LabelId label = p.labels.push_back("a \"quoted\"\\ label\n");
  const MessageId message = p.messages.push_back("Failed: {} # not a comment");
  const PhaseId phase = p.phases.push_back("load");
  p.events = 2;
  p.crash_message = "boom";
  const TensorId plain =
      p.tensors.push_back({100_MiB, MemoryClass::parameters, {}, {}, {}, {}, {}});
  const TensorId warns = p.tensors.push_back(
      {Bytes{12345}, MemoryClass::temporaries, OnFailure::warn, scope, label, label, message});
  const compute::Kernel gemm{&compute::kGemm,
                             {{DType::bf16, {2, 8, 4}}, {DType::bf16, {16, 4}}},
                             {{DType::f32, {2, 8, 16}}},
                             true,
                             true};
  const KernelId kernel = p.kernels.push_back(gemm);
  p.kernels.push_back({&compute::kFill, {}, {{DType::f32, {}}}, false, false});
  const CollectiveId call =
      p.collectives.push_back({CollectiveKind::all_to_all, GroupId{3}, 1_GiB, scope});
  const HostBufferId buffer =
      p.host_buffers.push_back({7_MiB, HostMemoryKind::file_backed, scope, label});
  const ExternalId external = p.externals.push_back({500_MiB, label});
  const auto add = [&](Body body, StreamRole stream = StreamRole::compute, ScopeId at = {}) {
    p.ops.push_back({body, at, stream});
  };
  add(BeginPhase{phase});
  add(Alloc{plain}, StreamRole::unshard, scope);
  add(RecordStream{plain, StreamRole::post_backward});
  add(Launch{kernel}, StreamRole::pre_unshard);
  add(Collective{call}, StreamRole::communication, scope);
  add(Copy{3, CopyDirection::device_to_host, true, true, warns});
  add(Copy{5, CopyDirection::host_to_device, false, false, {}}, StreamRole::copy_in);
  add(HostWork{Duration{1234567}});
  add(HostAlloc{buffer});
  add(HostFree{buffer});
  add(EmptyCache{});
  add(ExternalAlloc{external});
  add(ExternalFree{external});
  add(RecordEvent{EventId{1}});
  add(WaitEvent{EventId{0}});
  add(Synchronize{EventId{1}});
  add(Synchronize{});
  add(Loop{2, 10});
  add(Alloc{warns});
  add(Free{warns});
  return p;
}

TEST_CASE("a program reads back to what it was") {
  const Program before = full_program();
  const std::string text = to_text(before);
  Diagnostics diagnostics;
  const auto after = parse(text, diagnostics);
  INFO(render(diagnostics));
  REQUIRE(after);
  CHECK(to_text(*after) == text);
  CHECK(after->labels[LabelId{0}] == before.labels[LabelId{0}]);
  CHECK(after->messages[MessageId{0}] == before.messages[MessageId{0}]);
  CHECK(after->crash_message == "boom");
  CHECK(after->events == 2);
  CHECK(after->kernels[KernelId{0}] == before.kernels[KernelId{0}]);
  CHECK(after->kernels[KernelId{1}] == before.kernels[KernelId{1}]);
  CHECK(after->collectives[CollectiveId{0}] == before.collectives[CollectiveId{0}]);
  CHECK(after->tensors[TensorId{1}].bytes == Bytes{12345});
  CHECK(after->tensors[TensorId{1}].warning == MessageId{0});
  REQUIRE(after->ops.size() == before.ops.size());
  for (std::size_t i = 0; i < before.ops.size(); ++i) {
    CHECK(after->ops[i].body.index() == before.ops[i].body.index());
    CHECK(after->ops[i].stream == before.ops[i].stream);
    CHECK(after->ops[i].scope == before.ops[i].scope);
  }
  CHECK(std::get<HostWork>(after->ops[7].body).duration == Duration{1234567});
}

TEST_CASE("the text is one op a line, with what stands behind an id as comment") {
  Program p;
  p.scopes.push_back("layers.0");
  p.labels.push_back("weight");
  p.tensors.push_back({64_MiB, MemoryClass::parameters, {}, ScopeId{0}, LabelId{0}, {}, {}});
  p.ops.push_back({Alloc{TensorId{0}}, ScopeId{0}, StreamRole::unshard});
  p.ops.push_back({Synchronize{}, {}, StreamRole::compute});
  CHECK(to_text(p) ==
        "scope s0 \"layers.0\"\n"
        "label l0 \"weight\"\n"
        "crash_message \"CUDA error: invalid argument\"\n"
        "tensor t0 64MiB parameters scope s0 label l0\n"
        "# \"layers.0\"\n"
        "alloc t0 on unshard in s0  # 64.00 MiB \"weight\"\n"
        "synchronize\n");
}

// The message and column of the only mistake in `text`.
std::string mistake(const std::string& text) {
  Diagnostics diagnostics;
  if (parse(text, diagnostics)) return "none";
  REQUIRE(diagnostics.error_count() == 1);
  const Diagnostic& d = diagnostics.all()[0];
  return std::to_string(d.at.line) + ":" + std::to_string(d.at.column) + " " + d.message +
         (d.hint.empty() ? "" : "; " + d.hint);
}

TEST_CASE("mistakes are told with their place") {
  CHECK(mistake("aloc t0") == "1:1 unknown statement 'aloc'; did you mean 'alloc'?");
  CHECK(mistake("\"alloc\" t0") == "1:1 statement must not stand in quotes");
  CHECK(mistake("\n  alloc t0") == "2:9 t0 is not declared");
  CHECK(mistake("alloc x0") == "1:7 'x0' is not an id such as t0");
  CHECK(mistake("alloc") == "1:1 an id such as t0 is missing at the end of the line");
  CHECK(mistake("tensor t1 1B temporaries") == "1:8 the next id here is t0");
  CHECK(mistake("tensor t0 12 temporaries") == "1:11 '12' is not a size; write 64MiB or 512B");
  CHECK(mistake("tensor t0 1B temporary") ==
        "1:14 unknown memory class 'temporary'; did you mean 'temporaries'?");
  CHECK(mistake("scope s0 layers") == "1:10 the text must stand in quotes");
  CHECK(mistake("scope s0 \"layers") == "1:10 the string does not end");
  CHECK(mistake("empty_cache now") == "1:13 'now' is too much here");
  CHECK(mistake("host_work 5") == "1:11 '5' is not a time; write 12us or 3ms");
  CHECK(mistake("wait_event e0") == "1:12 e0 is not declared");
  CHECK(mistake("loop 3 time 4") == "1:8 expected 'times'");
  CHECK(mistake("kernel k0 gemm bf16[2] -> bf16[2]") ==
        "1:27 operands are missing or have too few dimensions");
  CHECK(mistake("kernel k0 fill -> bf16[99999999,99999999]") ==
        "1:19 'bf16[99999999,99999999]' is not a tensor type; write bf16[2048,4096]");
  CHECK(mistake("kernel k0 fill -> bf17[1]").rfind("1:19 'bf17[1]' is not a tensor type", 0) == 0);
}

TEST_CASE("every bad line is told of at once, comments and blank lines are none") {
  Diagnostics diagnostics;
  CHECK_FALSE(parse("# fine\n\nbad\nworse\n", diagnostics));
  CHECK(diagnostics.error_count() == 2);
  Diagnostics none;
  CHECK(parse("", none));
}

}  // namespace
}  // namespace sim::program
