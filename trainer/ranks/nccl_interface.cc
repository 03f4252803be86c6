#include "trainer/ranks/nccl_interface.h"

#include <cstdlib>

#include "trainer/ranks/sockets.h"

namespace trainfare::trainer {

void KeepNcclToItsHost(const RankPlace& place) {
  if (AllHere(place)) ::setenv("NCCL_SOCKET_IFNAME", "=lo", /*overwrite=*/0);
}

}  // namespace trainfare::trainer
