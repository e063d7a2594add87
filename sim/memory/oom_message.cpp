#include "sim/memory/oom_message.h"

#include <fmt/format.h>

namespace sim::memory {
namespace {

// reportProcessMemoryInfo(), from 2.1 on.
std::string process_list(const std::vector<DeviceProcess>& processes) {
  std::string text;
  for (const DeviceProcess& process : processes) {
    text += process.is_this_process ? "Including non-PyTorch memory, this process"
                                    : fmt::format("Process {}", process.pid);
    text += fmt::format(" has {} memory in use. ", format_size(process.used));
  }
  return text;
}

// Sources: 1.13.1 and 2.0 sources for one_line; reports of 2.1 for its wording; a copy of the main
// branch of spring 2024 (it computes the "allowed" part and does not print it) for 2.2 to 2.4;
// reports of torch.OutOfMemoryError (named so from 2.5 on) with the "allowed" part; reports of 2.9
// and 2.10 for PYTORCH_ALLOC_CONF; recordings of 2.11.0 for documentation_moved.
std::string_view advice(OomWording wording) {
  switch (wording) {
    case OomWording::one_line:
      return " If reserved memory is >> allocated memory try setting max_split_size_mb to avoid"
             " fragmentation.  See documentation for Memory Management and"
             " PYTORCH_CUDA_ALLOC_CONF";
    case OomWording::capacty:
      return " If reserved but unallocated memory is large try setting max_split_size_mb to avoid"
             " fragmentation.  See documentation for Memory Management and"
             " PYTORCH_CUDA_ALLOC_CONF";
    case OomWording::advice_expandable:
    case OomWording::allowed_printed:
      return " If reserved but unallocated memory is large try setting"
             " PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
             "  See documentation for Memory Management "
             " (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)";
    case OomWording::generic_variable:
      return " If reserved but unallocated memory is large try setting"
             " PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
             "  See documentation for Memory Management "
             " (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)";
    case OomWording::documentation_moved:
      return " If reserved but unallocated memory is large try setting"
             " PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
             "  See documentation for Memory Management "
             " (https://docs.pytorch.org/docs/stable/notes/"
             "cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)";
  }
  return {};
}

}  // namespace

std::string format_size(Bytes size) {
  const auto n = static_cast<double>(size.count);
  if (size <= Bytes{1024}) return fmt::format("{} bytes", size.count);
  if (size <= Bytes{1 << 20}) return fmt::format("{:.2f} KiB", n / 1024.0);
  if (size <= Bytes{1 << 30}) return fmt::format("{:.2f} MiB", n / 1048576.0);
  return fmt::format("{:.2f} GiB", n / 1073741824.0);
}

std::string oom_message(const AllocatorProfile& profile, const OomFigures& f) {
  const OomWording wording = profile.oom_wording;
  std::string allowed;
  if (f.allowed && wording != OomWording::capacty && wording != OomWording::advice_expandable) {
    allowed = format_size(*f.allowed) + " allowed; ";
  }
  std::string text = "CUDA out of memory. Tried to allocate " + format_size(f.tried);
  if (wording == OomWording::one_line) {
    text += fmt::format(
        " (GPU {}; {} total capacity; {} already allocated; {} free; {}{} reserved in total by"
        " PyTorch)",
        f.gpu, format_size(f.total), format_size(f.allocated), format_size(f.free), allowed,
        format_size(f.reserved));
  } else {
    text += fmt::format(
        ". GPU {} has a total {} of {} of which {} is free. {}{}Of the allocated memory {} is"
        " allocated by PyTorch, and {} is reserved by PyTorch but unallocated.",
        f.gpu, wording == OomWording::capacty ? "capacty" : "capacity", format_size(f.total),
        format_size(f.free), process_list(f.processes), allowed, format_size(f.allocated),
        format_size(f.reserved - f.allocated));
  }
  return text.append(advice(wording));
}

}  // namespace sim::memory
