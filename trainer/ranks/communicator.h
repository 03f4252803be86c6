#pragma once

// The ranks of one run as a c10d process group: Gloo between processors, NCCL
// between GPUs. c10d's own headers stay in the .cc file.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "trainer/ranks/ranks.h"
#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

struct CommunicatorOptions {
  // Silence after which a rank counts as lost.
  std::chrono::milliseconds lost_after{15'000};
  // For all ranks to come together; nullopt: as trainer/ranks/gathering.h has
  // it.
  std::optional<std::chrono::milliseconds> join_within;
  // Told once, from another thread, that a rank is lost: one line that names
  // it. The process cannot go on; a collective may hang in this very moment.
  std::function<void(const std::string&)> on_lost;
};

// A collective under way.
class Transfer {
 public:
  virtual ~Transfer() = default;
  // Until it is done; for GPU tensors until it is queued. Throws when it
  // failed.
  virtual void Wait() = 0;
};

class Communicator {
 public:
  // All ranks of `place.world_size` must call this. Throws InputError where
  // they do not come together: two of one number, a port in use, ranks missing.
  static std::unique_ptr<Communicator> Join(const RankPlace& place,
                                            at::Device device,
                                            const CommunicatorOptions& options);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const RankPlace& place() const { return place_; }
  int rank() const { return place_.rank; }
  int world_size() const { return place_.world_size; }
  std::string backend() const;  // gloo, nccl; none for one rank
  // "tcp within a host", "nccl between hosts"; empty for one rank.
  std::string transport() const;

  // Sums `tensor` over all ranks, in place; one at a time, in the order of the
  // calls. `done`, if any, runs on another thread the moment the sum is here
  // (processors only).
  std::unique_ptr<Transfer> AllReduce(const at::Tensor& tensor,
                                      std::function<void()> done = {});
  // The shares of all ranks, in their order, to `whole`. In turn with the
  // other collectives, as are those below.
  std::unique_ptr<Transfer> AllGather(const at::Tensor& share,
                                      const at::Tensor& whole,
                                      std::function<void()> done = {});
  // To `share` each rank's own part of the sum of `whole` over all ranks; the
  // ranks have parts of one size.
  std::unique_ptr<Transfer> ReduceScatter(const at::Tensor& whole,
                                          const at::Tensor& share,
                                          std::function<void()> done = {});
  void Broadcast(const at::Tensor& tensor);  // rank 0's value to all
  void Barrier();

  // The next line of rank 0, to all; nullopt: rank 0 has no more.
  void Publish(const std::optional<std::string>& line);  // rank 0
  std::optional<std::string> NextPublished();            // the others

  // The regular end: waits for the others.
  void Leave();
  // Tells the others why this rank ends; they end, too.
  void Fail(const std::string& message);

 private:
  struct State;
  Communicator(const RankPlace& place, std::unique_ptr<State> state);

  RankPlace place_;
  std::unique_ptr<State> state_;  // null for one rank
};

}  // namespace trainfare::trainer
