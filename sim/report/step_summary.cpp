#include "sim/report/step_summary.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sim/report/verdict_text.h"

namespace sim::report {

namespace {

using Interval = std::pair<Instant, Instant>;

const PhaseSummary* find(const std::vector<PhaseSummary>& phases, std::string_view name) {
  for (const PhaseSummary& phase : phases) {
    if (phase.name == name) return &phase;
  }
  return nullptr;
}

// Time under one phase name: a name that comes back counts each stay.
std::optional<Duration> time_under(const Timeline& timeline, const std::string& name) {
  std::optional<Duration> total;
  for (const PhaseRecord& record : timeline.ranks.front().phases) {
    if (record.name != name) continue;
    total = total.value_or(Duration{}) + (record.end - record.begin);
  }
  return total;
}

// Sorted, disjoint union of intervals.
std::vector<Interval> merged(std::vector<Interval> all) {
  std::sort(all.begin(), all.end());
  std::vector<Interval> out;
  for (const Interval& next : all) {
    if (!out.empty() && next.first <= out.back().second) {
      out.back().second = std::max(out.back().second, next.second);
    } else {
      out.push_back(next);
    }
  }
  return out;
}

Duration length(const std::vector<Interval>& intervals) {
  Duration total{};
  for (const Interval& i : intervals) total += i.second - i.first;
  return total;
}

// Time in which only communication ran: |communication or work| - |work|.
std::optional<Duration> exposed(const Timeline& timeline, const PhaseSummary& step) {
  if (timeline.slices.empty()) return std::nullopt;
  const RankId rank = timeline.ranks.front().ranks.front();
  std::vector<Interval> work, both;
  for (const Slice& slice : timeline.slices) {
    if (slice.rank != rank || slice.on_host) continue;
    const Interval inside{std::max(slice.begin, step.begin), std::min(slice.end, step.end)};
    if (inside.first >= inside.second) continue;
    if (slice.kind == SliceKind::kernel) work.push_back(inside);
    if (slice.kind == SliceKind::kernel || slice.kind == SliceKind::collective) {
      both.push_back(inside);
    }
  }
  return length(merged(std::move(both))) - length(merged(std::move(work)));
}

// The dtype that the matrix products run in.
DType compute_dtype(const PrecisionSpec& precision) {
  if (precision.autocast) return precision.autocast->value;
  if (precision.weights.value == DType::f32 && precision.tf32) return DType::tf32;
  return precision.weights.value;
}

}  // namespace

std::optional<StepSummary> summarise_step(const Subject& subject, const Timeline& timeline,
                                          const std::vector<PhaseSummary>& phases) {
  const PhaseSummary* step = find(phases, "step");
  if (step == nullptr || step->end <= step->begin) return std::nullopt;
  if (is_in(phase_of(timeline.verdict), "step")) return std::nullopt;
  StepSummary summary;
  summary.time = step->end - step->begin;
  summary.forward = time_under(timeline, "step.forward");
  summary.backward = time_under(timeline, "step.backward");
  summary.optimizer = time_under(timeline, "step.optimizer");
  summary.exposed_communication = exposed(timeline, *step);

  const double seconds = to_seconds(summary.time);
  const double gpus = static_cast<double>(subject.scenario.cluster.world_size());
  summary.tokens_per_second = static_cast<double>(subject.tokens_per_step) / seconds;
  const double flops_per_gpu = subject.model_flops_per_step.count / seconds / gpus;
  summary.model_tflops_per_gpu = flops_per_gpu * 1e-12;
  const auto& peaks = subject.scenario.cluster.gpu.peak;
  const auto peak = peaks.find(compute_dtype(subject.scenario.job.precision));
  if (peak != peaks.end() && peak->second.per_second > 0) {
    summary.mfu = flops_per_gpu / peak->second.per_second;
  }
  return summary;
}

}  // namespace sim::report
