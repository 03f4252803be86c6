#include "trainer/ranks/rank_records.h"

#include <cstddef>
#include <string_view>

namespace trainfare::trainer {

std::unique_ptr<LineWriter> OpenRecords(std::string path,
                                        const Communicator* ranks) {
  constexpr std::string_view kRank = "{rank}";
  const size_t at = path.find(kRank);
  const int rank = ranks == nullptr ? 0 : ranks->rank();
  if (at != std::string::npos) {
    path.replace(at, kRank.size(), std::to_string(rank));
  } else if (rank != 0) {
    return nullptr;
  }
  return std::make_unique<LineWriter>(path);
}

}  // namespace trainfare::trainer
