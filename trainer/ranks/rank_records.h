#pragma once

#include <memory>
#include <string>

#include "trainer/ranks/communicator.h"
#include "trainer/runtime/line_writer.h"

namespace trainfare::trainer {

// Where this rank's records go: to `path`, with "{rank}" in it replaced by its
// number; null where it has none and rank 0 alone writes.
std::unique_ptr<LineWriter> OpenRecords(std::string path,
                                        const Communicator* ranks);

}  // namespace trainfare::trainer
