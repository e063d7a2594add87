// What the ways of loading a checkpoint share.
#pragma once

#include "sim/program/checkpoint_files.h"
#include "sim/program/session.h"

namespace sim::program {

// One file of the checkpoint while its tensors are read: mapped (page cache) or unpickled whole.
class OpenFile {
 public:
  OpenFile(Session& session, const CheckpointFiles& files, const LoadingFacts& facts,
           const Shard& shard);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

 private:
  Builder& builder_;
  HostBufferId buffer_;
};

// --- load_packed.cpp: every weight to the device, linear layers packed on the way
// or, where they `wait_on_host`, back to the host without their scales; the buffers then stay
// there.
void load_packed(Session& session, const CheckpointFiles& files, const LoadingFacts& facts,
                 LoadedModel& model, bool wait_on_host);

}  // namespace sim::program
