// A switch with a delay, for kernels without the netem queue:
//
//   delay_line MICROSECONDS INTERFACE INTERFACE...
//
// Every frame that arrives at one interface leaves by that of its destination
// so many microseconds later (broadcasts by all others), in order. Prints
// "ready" and runs until it is killed. Large frames that the kernel has not yet
// cut stay so (PACKET_VNET_HDR), as through a bridge.

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
// Size of the kernel's virtio_net_hdr, which goes before every frame; its
// header is not for C++.
constexpr size_t kOffloads = 10;

using Address = std::array<unsigned char, ETH_ALEN>;

[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::exit(1);
}

int OpenPort(const char* interface) {
  const int port = ::socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
  if (port < 0) Die("socket");
  const int on = 1;
  if (::setsockopt(port, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) != 0) {
    Die("PACKET_VNET_HDR");
  }
  const int ignore = 1;
  ::setsockopt(
      port, SOL_PACKET, PACKET_IGNORE_OUTGOING, &ignore, sizeof(ignore));
  const int room = 64 << 20;
  ::setsockopt(port, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
  ::setsockopt(port, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(::if_nametoindex(interface));
  if (address.sll_ifindex == 0 ||
      ::bind(port,
             reinterpret_cast<const sockaddr*>(&address),
             sizeof(address)) != 0) {
    Die(interface);
  }
  return port;
}

struct Frame {
  Clock::time_point due;
  size_t from;
  std::vector<char> bytes;  // offloads and the frame
};

class Switch {
 public:
  Switch(std::chrono::microseconds delay, std::vector<int> ports)
      : delay_(delay), ports_(std::move(ports)), buffer_(kLargestFrame) {}

  [[noreturn]] void Run() {
    std::vector<pollfd> polls;
    for (const int port : ports_) polls.push_back({port, POLLIN, 0});
    while (true) {
      timespec wait{};
      const timespec* timeout = nullptr;
      if (!frames_.empty()) {
        const auto left = std::max(
            std::chrono::nanoseconds(0),
            std::chrono::nanoseconds(frames_.front().due - Clock::now()));
        wait.tv_sec = left.count() / 1'000'000'000;
        wait.tv_nsec = left.count() % 1'000'000'000;
        timeout = &wait;
      }
      if (::ppoll(polls.data(), polls.size(), timeout, nullptr) < 0) {
        Die("ppoll");
      }
      for (size_t i = 0; i < polls.size(); ++i) {
        if ((polls[i].revents & POLLIN) != 0) Receive(i);
      }
      while (!frames_.empty() && frames_.front().due <= Clock::now()) {
        Send(frames_.front());
        frames_.pop_front();
      }
    }
  }

 private:
  static constexpr size_t kLargestFrame = 256 << 10;

  void Receive(size_t port) {
    for (int i = 0; i < 64; ++i) {
      const ssize_t size =
          ::recv(ports_[port], buffer_.data(), buffer_.size(), MSG_DONTWAIT);
      if (size < static_cast<ssize_t>(kOffloads + ETH_HLEN)) {
        return;
      }
      Frame frame{Clock::now() + delay_,
                  port,
                  {buffer_.begin(), buffer_.begin() + size}};
      Address source;
      std::memcpy(source.data(), Header(frame) + ETH_ALEN, ETH_ALEN);
      port_of_[source] = port;
      if (delay_.count() == 0) {
        Send(frame);
      } else {
        frames_.push_back(std::move(frame));
      }
    }
  }

  static const char* Header(const Frame& frame) {
    return frame.bytes.data() + kOffloads;
  }

  void Send(const Frame& frame) {
    Address destination;
    std::memcpy(destination.data(), Header(frame), ETH_ALEN);
    const auto known = port_of_.find(destination);
    for (size_t port = 0; port < ports_.size(); ++port) {
      if (port == frame.from) continue;
      if (known != port_of_.end() && known->second != port) continue;
      // A full queue drops, as a switch does; TCP sends again.
      if (::send(ports_[port], frame.bytes.data(), frame.bytes.size(), 0) < 0 &&
          errno != ENOBUFS) {
        std::perror("send");
      }
    }
  }

  std::chrono::microseconds delay_;
  std::vector<int> ports_;
  std::vector<char> buffer_;
  std::deque<Frame> frames_;  // in the order of their arrival, and so of due
  std::map<Address, size_t> port_of_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: delay_line MICROSECONDS INTERFACE...\n");
    return 2;
  }
  std::vector<int> ports;
  for (int i = 2; i < argc; ++i) ports.push_back(OpenPort(argv[i]));
  std::puts("ready");
  std::fflush(stdout);
  Switch(std::chrono::microseconds(std::atol(argv[1])), ports).Run();
}
