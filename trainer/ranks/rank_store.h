#pragma once

// The store by which the ranks of a run find each other: rank 0's, behind a door
// where they have a secret, or a launcher's. For sources that may include c10d's
// headers.

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "model/error.h"
#include "trainer/ranks/gathering.h"
#include "trainer/ranks/ranks.h"
#include "trainer/ranks/store_door.h"

namespace trainfare::trainer {

// The store of rank 0 or of the launcher; `door` becomes what stands before it,
// if anything does. Throws InputError where nobody listens, or the secrets
// differ.
c10::intrusive_ptr<c10d::Store> OpenStore(const RankPlace& place,
                                          const Gathering& gathering,
                                          std::unique_ptr<StoreDoor>& door);

// Enters the run, and waits for all others. Throws InputError where they do not
// come together.
void RegisterRank(c10d::Store& store,
                  const RankPlace& place,
                  const Gathering& gathering);

// That the store was there and is not any more, as `error` has it.
model::InputError StoreGone(const RankPlace& place,
                            const std::exception& error);

std::string HostName();

// What another process wrote into the store.
std::string TextOf(const std::vector<uint8_t>& bytes);

}  // namespace trainfare::trainer
