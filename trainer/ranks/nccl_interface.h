#pragma once

// Where NCCL's own sockets listen.

#include "trainer/ranks/ranks.h"

namespace trainfare::trainer {

// NCCL connects its ranks over what it takes for the fastest interface, also
// where all of them are on one host: there it is kept to the loopback, which
// nobody else reaches (NCCL's documentation, NCCL_SOCKET_IFNAME; "=" asks for
// that very name). Over hosts the choice stays NCCL's, since gradients may go
// that way; a variable that is set counts before either. To be called before
// NCCL is.
void KeepNcclToItsHost(const RankPlace& place);

}  // namespace trainfare::trainer
