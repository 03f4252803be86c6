#include "trainer/ranks/sockets.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

#include "hardware/files/foreign_text.h"
#include "model/error.h"

namespace trainfare::trainer {
namespace {

using model::InputError;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Addresses of a host, freed again.
class Addresses {
 public:
  Addresses(const std::string& host, uint16_t port, int kind, int flags = 0) {
    addrinfo hints{};
    hints.ai_socktype = kind;
    hints.ai_flags = flags;
    if (::getaddrinfo(host.empty() ? nullptr : host.c_str(),
                      std::to_string(port).c_str(),
                      &hints,
                      &first_) != 0) {
      throw InputError(fmt::format("MASTER_ADDR: no address for \"{}\"", host));
    }
  }
  ~Addresses() { ::freeaddrinfo(first_); }
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;
  const addrinfo* first() const { return first_; }

 private:
  addrinfo* first_ = nullptr;
};

bool IsLoopback(const addrinfo& one) {
  if (one.ai_family == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(
        &reinterpret_cast<const sockaddr_in6*>(one.ai_addr)->sin6_addr);
  }
  return ntohl(reinterpret_cast<const sockaddr_in*>(one.ai_addr)
                   ->sin_addr.s_addr) >>
             24 ==
         127;
}

// Neither "localhost", of which everybody knows where it is, nor numbers.
bool IsOwnName(const std::string& host) {
  in6_addr numbers{};
  return host != "localhost" &&
         ::inet_pton(AF_INET, host.c_str(), &numbers) != 1 &&
         ::inet_pton(AF_INET6, host.c_str(), &numbers) != 1;
}

// A socket that listens at `one`; without a descriptor where it cannot, which
// errno tells.
Socket ListenAt(const addrinfo& one) {
  Socket listener(
      ::socket(one.ai_family, SOCK_STREAM | SOCK_CLOEXEC, one.ai_protocol));
  if (!listener) return listener;
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(listener.get(), one.ai_addr, one.ai_addrlen) != 0 ||
      ::listen(listener.get(), SOMAXCONN) != 0) {
    const int error = errno;
    listener = Socket();
    errno = error;
  }
  return listener;
}

// Whether the kernel's table (proc(5)) has a connection from `one` to `other`,
// each behind `prefix`, that this process's user holds.
bool FoundOfThisUser(const char* table,
                     const char* prefix,
                     const sockaddr_in& one,
                     const sockaddr_in& other) {
  const auto text = [&](const sockaddr_in& end) {
    return fmt::format(
        "{}{:08X}:{:04X}", prefix, end.sin_addr.s_addr, ntohs(end.sin_port));
  };
  // Connected: of one that is closed the kernel forgets the user.
  const std::string wanted = fmt::format(" {} {} 01 ", text(one), text(other));
  std::ifstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    const size_t found = line.find(wanted);
    if (found == std::string::npos) continue;
    // Behind the state: queues, timer, retransmissions, user.
    std::istringstream fields(line.substr(found + wanted.size()));
    std::string skipped;
    uid_t user = 0;
    return fields >> skipped >> skipped >> skipped >> user &&
           user == ::geteuid();
  }
  return false;
}

// Whether the descriptor listens for TCP.
bool Listens(int descriptor) {
  int listens = 0;
  int family = 0;
  socklen_t size = sizeof(int);
  return ::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) ==
             0 &&
         ::getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 &&
         listens != 0 && (family == AF_INET || family == AF_INET6);
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = other.Release();
  }
  return *this;
}

Socket::~Socket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool AllHere(const RankPlace& place) {
  return place.local_world_size == place.world_size;
}

std::string MeetingHost(const RankPlace& place) {
  return AllHere(place) && !place.launcher_store ? kLoopback : place.store_host;
}

Socket Listen(const RankPlace& place) {
  const std::string host = MeetingHost(place);
  const Addresses named(host, place.store_port, SOCK_STREAM);
  const bool nobody_comes =
      !AllHere(place) && IsOwnName(host) && IsLoopback(*named.first());
  if (nobody_comes) {
    std::cerr << fmt::format(
        "note: \"{}\" is the loopback of this host: port {} listens on all "
        "its addresses; an address for MASTER_ADDR keeps strangers out\n",
        hardware::OneLine(host, 200),
        place.store_port);
  }
  const Addresses everywhere("", place.store_port, SOCK_STREAM, AI_PASSIVE);
  int error = 0;
  for (const addrinfo* one = (nobody_comes ? everywhere : named).first();
       one != nullptr;
       one = one->ai_next) {
    Socket listener = ListenAt(*one);
    if (listener) return listener;
    if (error != EADDRINUSE) error = errno;
  }
  throw InputError(fmt::format(
      "MASTER_PORT {}: {}",
      place.store_port,
      error == EADDRINUSE
          ? "in use on this host, by another job or by a second rank 0; "
            "choose another port"
      : error == EADDRNOTAVAIL
          ? fmt::format("\"{}\" of MASTER_ADDR is no address of this host, "
                        "where rank 0 is",
                        hardware::OneLine(host, 200))
          : std::string(std::strerror(error))));
}

std::string AddressTowards(const std::string& host, uint16_t port) {
  const Addresses found(host, port, SOCK_DGRAM);
  std::string text;
  for (const addrinfo* one = found.first(); one != nullptr && text.empty();
       one = one->ai_next) {
    const int descriptor =
        ::socket(one->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) continue;
    sockaddr_storage own{};
    socklen_t size = sizeof(own);
    std::array<char, NI_MAXHOST> name{};
    // Sends nothing: for datagrams to connect is to choose a route.
    if (::connect(descriptor, one->ai_addr, one->ai_addrlen) == 0 &&
        ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &size) ==
            0 &&
        ::getnameinfo(reinterpret_cast<const sockaddr*>(&own),
                      size,
                      name.data(),
                      name.size(),
                      nullptr,
                      0,
                      NI_NUMERICHOST) == 0) {
      text = name.data();
    }
    ::close(descriptor);
  }
  if (text.empty()) {
    throw InputError(
        fmt::format("MASTER_ADDR: no way from here to \"{}\"", host));
  }
  return text;
}

std::pair<Socket, SocketAddress> ListenOnLoopback() {
  const Addresses loopback(kLoopback, 0, SOCK_STREAM);
  Socket listener = ListenAt(*loopback.first());
  SocketAddress own;
  own.size = sizeof(own.address);
  if (!listener || ::getsockname(listener.get(),
                                 reinterpret_cast<sockaddr*>(&own.address),
                                 &own.size) != 0) {
    throw InputError(
        fmt::format("this host's loopback cannot be listened at: {}",
                    std::strerror(errno)));
  }
  return {std::move(listener), own};
}

uint16_t PortOf(const SocketAddress& address) {
  return ntohs(
      address.address.ss_family == AF_INET6
          ? reinterpret_cast<const sockaddr_in6*>(&address.address)->sin6_port
          : reinterpret_cast<const sockaddr_in*>(&address.address)->sin_port);
}

void MakeQuick(const Socket& socket) {
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

Socket Dial(const SocketAddress& there) {
  Socket socket(::socket(there.address.ss_family,
                         SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                         IPPROTO_TCP));
  if (!socket) return socket;
  MakeQuick(socket);
  if (::connect(socket.get(),
                reinterpret_cast<const sockaddr*>(&there.address),
                there.size) != 0 &&
      errno != EINPROGRESS) {
    return Socket();
  }
  return socket;
}

bool Answers(const SocketAddress& there) {
  const Socket socket = Dial(there);
  if (!socket) return false;
  pollfd connecting{socket.get(), POLLOUT, 0};
  int error = 0;
  socklen_t size = sizeof(error);
  return ::poll(&connecting, 1, 1000) == 1 &&
         ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 &&
         error == 0;
}

bool IsFromThisUser(const Socket& connection) {
  sockaddr_in own{};
  sockaddr_in other{};
  socklen_t own_size = sizeof(own);
  socklen_t other_size = sizeof(other);
  if (::getsockname(connection.get(),
                    reinterpret_cast<sockaddr*>(&own),
                    &own_size) != 0 ||
      ::getpeername(connection.get(),
                    reinterpret_cast<sockaddr*>(&other),
                    &other_size) != 0) {
    return false;
  }
  // c10d's sockets are IPv6's, whose table has IPv4's addresses behind this.
  return FoundOfThisUser("/proc/self/net/tcp", "", other, own) ||
         FoundOfThisUser(
             "/proc/self/net/tcp6", "0000000000000000FFFF0000", other, own);
}

std::optional<SocketAddress> AwaitStore(
    const RankPlace& place,
    milliseconds timeout,
    const std::function<bool(const SocketAddress&)>& answers) {
  const Addresses there(MeetingHost(place), place.store_port, SOCK_STREAM);
  const auto end = Clock::now() + timeout;
  while (true) {
    for (const addrinfo* one = there.first(); one != nullptr;
         one = one->ai_next) {
      SocketAddress address;
      address.size = one->ai_addrlen;
      std::memcpy(&address.address, one->ai_addr, one->ai_addrlen);
      if (answers(address)) return address;
    }
    if (Clock::now() > end) return std::nullopt;
    std::this_thread::sleep_for(milliseconds(50));
  }
}

void CloseDoors() {
  // A filter that takes 0 bytes of any packet: none opens a connection, and
  // those that are open have none. Whoever owns the socket may keep it.
  sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog filter{1, &nothing};
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    const std::string name = entry.path().filename().string();
    int descriptor = -1;
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    if (Listens(descriptor)) {
      ::setsockopt(
          descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
    }
  }
}

}  // namespace trainfare::trainer
