#pragma once

// The sockets at which ranks meet, bound here and not by c10d, whose message
// for a port in use is ten lines of stack.

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "trainer/ranks/ranks.h"

namespace trainfare::trainer {

// A descriptor that is closed with its owner.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(other.Release()) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }
  int Release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;  // negative: none
};

struct SocketAddress {
  sockaddr_storage address{};
  socklen_t size = 0;
};

inline constexpr const char* kLoopback = "127.0.0.1";

// Whether all ranks are on this host.
bool AllHere(const RankPlace& place);

// Where the ranks meet. Those of one host meet on its loopback, which nobody
// else reaches, whatever name the launcher gave the host.
std::string MeetingHost(const RankPlace& place);

// A socket that listens on the port of the ranks, at the address that they were
// given and no other. A host whose own name is its loopback (Debian's
// /etc/hosts) cannot be reached there from others: it listens everywhere, which
// is said. Throws InputError.
Socket Listen(const RankPlace& place);

// A socket that listens on this host's loopback, at a port that is free, and
// its address. Throws InputError.
std::pair<Socket, SocketAddress> ListenOnLoopback();
uint16_t PortOf(const SocketAddress& address);

// A connection to `there` that may still be under way; without a descriptor
// where there cannot be one. It does not block, and is quick.
Socket Dial(const SocketAddress& there);
// What is said through it goes out at once, however little it is.
void MakeQuick(const Socket& socket);

// Whether the other end of this connection over IPv4's loopback is held by a
// process of the same user as this one.
bool IsFromThisUser(const Socket& connection);

// The address from which this host talks to `host`: the one that the others
// can talk to, also where the host's own name resolves to its loopback. Throws
// InputError.
std::string AddressTowards(const std::string& host, uint16_t port);

// Until `answers` to one of rank 0's addresses; nullopt where it does not within
// `timeout`. c10d itself asks at ever longer intervals and ends well behind its
// timeout.
std::optional<SocketAddress> AwaitStore(
    const RankPlace& place,
    std::chrono::milliseconds timeout,
    const std::function<bool(const SocketAddress&)>& answers);

// Whether somebody listens there, within a second.
bool Answers(const SocketAddress& there);

// Where this process listens nobody comes in any more; who is in stays.
void CloseDoors();

}  // namespace trainfare::trainer
