#include "sim/program/phases/phases.h"

namespace sim::program {

namespace {
constexpr ByteRate kDiskWrite{1e9};  // torch.save to one local disk, single thread
}

// safe_save_model_for_hf_trainer and its like: every caller asks for the state dict; the first rank
// copies each entry to the host (value.cpu(), which copies from nowhere where a clone failed) and
// writes the file; the others drop theirs. All meet again at the end of the script.
void checkpoint_save(Session& session, Strategy& strategy, bool cache_emptied,
                     Assumptions& assumptions) {
  if (!session.scenario.job.save) return;
  const SaveSpec& save = *session.scenario.job.save;
  Builder& b = session.builder;
  b.phase("save");
  // A job near the card's limit retries several times a step, and each retry gives the whole cache
  // back; how long before the save the last one fell is chance (it moves with microseconds of the
  // host). An emptied cache is the reproducible end of that range: what is cut up then is what
  // training's tensors left.
  if (cache_emptied) {
    b.empty_cache();
    assumptions.add("allocator.cache_before_save", "emptied",
                    "when the last allocation retry of training fell is chance; an older cache "
                    "leaves up to 1.2 GiB "
                    "more in slivers");
  }
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
