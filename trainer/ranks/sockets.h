#pragma once

// The sockets at which ranks meet, bound here and not by c10d, whose message
// for a port in use is ten lines of stack.

#include <chrono>
#include <cstdint>
#include <string>

#include "trainer/ranks/ranks.h"

namespace trainfare::trainer {

// Whether all ranks are on this host.
bool AllHere(const RankPlace& place);

// Where the ranks meet. Those of one host meet on its loopback, which nobody
// else reaches, whatever name the launcher gave the host.
std::string MeetingHost(const RankPlace& place);

// A socket that listens on the port of the ranks, at the address that they were
// given and no other. A host whose own name is its loopback (Debian's
// /etc/hosts) cannot be reached there from others: it listens everywhere, which
// is said. Throws InputError.
int Listen(const RankPlace& place);

// The address from which this host talks to `host`: the one that the others
// can talk to, also where the host's own name resolves to its loopback. Throws
// InputError.
std::string AddressTowards(const std::string& host, uint16_t port);

// Until rank 0 listens; false where it does not within `timeout`. c10d itself
// asks at ever longer intervals and ends well behind its timeout.
bool AwaitStore(const RankPlace& place, std::chrono::milliseconds timeout);

// Where this process listens nobody comes in any more; who is in stays.
void CloseDoors();

}  // namespace trainfare::trainer
