#include "sim/program/phases/phases.h"

namespace sim::program {

namespace {
constexpr ByteRate kDiskWrite{1e9};  // torch.save to one local disk, single thread
}

// safe_save_model_for_hf_trainer and its like: every caller asks for the state dict; the first rank
// copies each entry to the host (value.cpu(), which copies from nowhere where a clone failed) and
// writes the file; the others drop theirs. All meet again at the end of the script.
void checkpoint_save(Session& session, Strategy& strategy) {
  if (!session.scenario.job.save) return;
  const SaveSpec& save = *session.scenario.job.save;
  Builder& b = session.builder;
  b.phase("save");
  const bool calls = save.called_by.value == SaveSpec::Callers::all || session.first_rank;
  if (!calls) return;
  StateDict entries = strategy.state_dict(session, save);
  if (session.first_rank) {
    Bytes written{0};
    for (StateDictEntry& entry : entries) {
      b.set_scope(entry.scope);
      written += entry.bytes;
      if (entry.device.valid()) {
        entry.host = b.host_allocate(entry.bytes, HostMemoryKind::anonymous, entry.scope,
                                     b.label("state-dict entry on the host"));
        b.copy(entry.bytes, CopyDirection::device_to_host, true, false, entry.device);
      }
    }
    for (const StateDictEntry& entry : entries) {
      if (entry.device.valid()) b.release(entry.device);
    }
    b.set_scope(b.scope(""));
    b.host_work(written / kDiskWrite);
    for (const StateDictEntry& entry : entries) {
      if (entry.host.valid()) b.host_free(entry.host);
    }
    return;
  }
  for (const StateDictEntry& entry : entries) {
    if (entry.device.valid()) b.release(entry.device);
    if (entry.host.valid()) b.host_free(entry.host);
  }
}

}  // namespace sim::program
