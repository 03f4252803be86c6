#include "trainer/ranks/store_door.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <string>
#include <utility>

namespace trainfare::trainer {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Of one guest, or of all who come, before the others have their turn.
constexpr int kMovesAtOnce = 16;
constexpr size_t kGuestsAtOnce = 64;

bool WouldBlock() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

// Whether all of it went out at once, as a few bytes do on a new connection.
bool Say(const Socket& socket, const std::string& text) {
  return text.empty() ||
         ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
             static_cast<ssize_t>(text.size());
}

bool Connected(const Socket& socket) {
  sockaddr_storage other{};
  socklen_t size = sizeof(other);
  return ::getpeername(
             socket.get(), reinterpret_cast<sockaddr*>(&other), &size) == 0;
}

enum class Heard { kMore, kAll, kEnd };

// Adds to `text` what is there of a message of `size` bytes, and nothing of
// what follows it.
Heard HearMore(const Socket& socket, size_t size, std::string& text) {
  const size_t before = text.size();
  text.resize(size);
  const ssize_t count =
      ::recv(socket.get(), text.data() + before, size - before, 0);
  const bool later = count < 0 && WouldBlock();
  text.resize(before + static_cast<size_t>(std::max<ssize_t>(count, 0)));
  if (text.size() == size) return Heard::kAll;
  return count > 0 || later ? Heard::kMore : Heard::kEnd;
}

// A guest of the door takes two descriptors of rank 0, where it would have
// taken the store one: as many as this process may have.
void AllowDescriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

// Bytes on their way from one socket to another.
class StoreDoor::Flow {
 public:
  bool empty() const { return begin_ == end_; }

  // Hands on what is there; false where there will be no more.
  bool Move(const Socket& from, const Socket& to) {
    for (int i = 0; i < kMovesAtOnce; ++i) {
      if (empty()) {
        const ssize_t count =
            ::recv(from.get(), bytes_.data(), bytes_.size(), 0);
        if (count <= 0) return count < 0 && WouldBlock();
        begin_ = 0;
        end_ = static_cast<size_t>(count);
      }
      const ssize_t count =
          ::send(to.get(), bytes_.data() + begin_, end_ - begin_, MSG_NOSIGNAL);
      if (count < 0) return WouldBlock();
      begin_ += static_cast<size_t>(count);
    }
    return true;
  }

 private:
  std::array<char, 8192> bytes_{};
  size_t begin_ = 0;
  size_t end_ = 0;
};

// A connection that came, and the one that it is led to.
class StoreDoor::Guest {
 public:
  // `outside` leads to who has to prove itself, `inside` to a process of this
  // host; a door has the latter from `beyond` once somebody is let in.
  Guest(Socket outside,
        Socket inside,
        std::unique_ptr<Handshake> handshake,
        const SocketAddress& beyond,
        milliseconds patience)
      : outside_(std::move(outside)),
        inside_(std::move(inside)),
        handshake_(std::move(handshake)),
        beyond_(beyond),
        end_(Clock::now() + patience) {
    gone_ = !outside_ || !Say(outside_, handshake_->Opening());
  }

  bool newcomer() const { return handshake_ != nullptr; }
  bool gone() const { return gone_; }
  void Drop() { gone_ = true; }
  Clock::time_point end() const { return end_; }

  // What it waits for; none of a socket that has nothing to wait for, of which
  // poll would tell again and again that it is closed.
  std::array<pollfd, 2> Waits() const {
    const auto wait = [](const Socket& socket, bool hears, bool says) {
      const int events = (hears ? POLLIN : 0) | (says ? POLLOUT : 0);
      return pollfd{
          events == 0 ? -1 : socket.get(), static_cast<short>(events), 0};
    };
    if (newcomer()) {
      return {wait(outside_, true, false), wait(inside_, false, false)};
    }
    return {wait(outside_, inwards_.empty(), !outwards_.empty()),
            wait(inside_, outwards_.empty(), !inwards_.empty())};
  }

  void Advance() {
    if (newcomer()) {
      ShakeHands();
    } else {
      // Both, also where one of them has ended.
      const bool goes_in = inwards_.Move(outside_, inside_);
      const bool goes_out = outwards_.Move(inside_, outside_);
      gone_ = gone_ || !goes_in || !goes_out;
    }
  }

 private:
  void ShakeHands() {
    const Heard heard = HearMore(outside_, handshake_->Expected(), said_);
    if (heard != Heard::kAll) {
      gone_ = gone_ || heard == Heard::kEnd;
      return;
    }
    const Handshake::Reply reply = handshake_->Hear(std::exchange(said_, ""));
    if (!Say(outside_, reply.text) ||
        reply.verdict == Handshake::Verdict::kWrong) {
      gone_ = true;
    } else if (reply.verdict == Handshake::Verdict::kRight) {
      if (!inside_) inside_ = Dial(beyond_);
      gone_ = !inside_;
      handshake_ = nullptr;
    }
  }

  Socket outside_;
  Socket inside_;
  std::unique_ptr<Handshake> handshake_;  // null once it is through
  SocketAddress beyond_;
  Clock::time_point end_;  // of the handshake
  bool gone_ = false;
  std::string said_;  // of the handshake's next message
  Flow inwards_;
  Flow outwards_;
};

std::unique_ptr<StoreDoor> StoreDoor::Open(Socket listener,
                                           const SocketAddress& store,
                                           const Agreement& agreement,
                                           const DoorLimits& limits) {
  AllowDescriptors();
  Rules rules{
      [agreement] { return HandshakeOfDoor(agreement); }, store, true, limits};
  return std::unique_ptr<StoreDoor>(
      new StoreDoor(std::move(listener), agreement.port, std::move(rules)));
}

std::unique_ptr<StoreDoor> StoreDoor::OpenRelay(const SocketAddress& door,
                                                const Agreement& agreement,
                                                const DoorLimits& limits) {
  auto [listener, own] = ListenOnLoopback();
  Rules rules{
      [agreement] { return HandshakeOfRank(agreement); }, door, false, limits};
  return std::unique_ptr<StoreDoor>(
      new StoreDoor(std::move(listener), PortOf(own), std::move(rules)));
}

StoreDoor::StoreDoor(Socket listener, uint16_t port, Rules rules)
    : port_(port),
      rules_(std::move(rules)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      listener_(std::move(listener)) {
  if (!wake_ || ::fcntl(listener_.get(), F_SETFL, O_NONBLOCK) != 0) {
    throw std::runtime_error("no descriptor to wake a thread by");
  }
  thread_ = std::thread([this] { Run(); });
}

StoreDoor::~StoreDoor() {
  ends_.store(true);
  Wake();
  thread_.join();
}

void StoreDoor::Close() {
  closes_.store(true);
  Wake();
}

void StoreDoor::Wake() const {
  // Where it is full the thread wakes anyway.
  const uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof(one));
}

void StoreDoor::Run() {
  while (!ends_.load()) Round();
  for (const auto& guest : guests_) {
    if (!guest->newcomer()) guest->Advance();
  }
}

void StoreDoor::Round() {
  const bool listens = listener_ && Clock::now() >= listens_again_;
  std::vector<pollfd> waits = {
      {wake_.get(), POLLIN, 0},
      {listens ? listener_.get() : -1, POLLIN, 0},
  };
  for (const auto& guest : guests_) {
    for (const pollfd& wait : guest->Waits()) waits.push_back(wait);
  }
  if (::poll(waits.data(), waits.size(), MillisecondsToWait()) < 0) return;
  if (waits[0].revents != 0) {
    uint64_t ignored = 0;
    [[maybe_unused]] const auto read =
        ::read(wake_.get(), &ignored, sizeof(ignored));
  }
  for (size_t i = 0; i < guests_.size(); ++i) {
    Guest& guest = *guests_[i];
    if (waits[2 + 2 * i].revents != 0 || waits[3 + 2 * i].revents != 0) {
      guest.Advance();
    }
    const bool late = Clock::now() >= guest.end() || closes_.load();
    if (guest.newcomer() && late) guest.Drop();
  }
  if (closes_.load()) {
    listener_ = Socket();
  } else if (waits[1].revents != 0) {
    LetIn();
  }
  guests_.erase(std::remove_if(guests_.begin(),
                               guests_.end(),
                               [](const auto& guest) { return guest->gone(); }),
                guests_.end());
}

void StoreDoor::LetIn() {
  for (size_t i = 0; i < kGuestsAtOnce; ++i) {
    Socket socket(::accept4(
        listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      auto guest = Receive(std::move(socket));
      if (guest == nullptr) continue;
      if (Newcomers() >= rules_.limits.newcomers) DropOldestNewcomer();
      guests_.push_back(std::move(guest));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
               errno == ENOMEM) {
      // Who waits to be let in is told of by poll until it is.
      if (!DropOldestNewcomer()) {
        listens_again_ = Clock::now() + milliseconds(100);
      }
      return;
    } else if (errno != ECONNABORTED && errno != EINTR) {
      return;
    }
  }
}

std::unique_ptr<StoreDoor::Guest> StoreDoor::Receive(Socket socket) const {
  try {
    MakeQuick(socket);
    Socket outside;
    Socket inside;
    if (rules_.is_door) {
      outside = std::move(socket);
    } else if (IsFromThisUser(socket)) {
      inside = std::move(socket);
      outside = Dial(rules_.beyond);
    } else {
      return nullptr;
    }
    return std::make_unique<Guest>(std::move(outside),
                                   std::move(inside),
                                   rules_.handshake(),
                                   rules_.beyond,
                                   rules_.limits.handshake);
  } catch (const std::exception&) {
    return nullptr;  // no memory, no random bytes: another may come later
  }
}

bool StoreDoor::DropOldestNewcomer() {
  for (const auto& guest : guests_) {
    if (guest->newcomer() && !guest->gone()) {
      guest->Drop();
      return true;
    }
  }
  return false;
}

size_t StoreDoor::Newcomers() const {
  return static_cast<size_t>(
      std::count_if(guests_.begin(), guests_.end(), [](const auto& guest) {
        return guest->newcomer() && !guest->gone();
      }));
}

int StoreDoor::MillisecondsToWait() const {
  auto end = Clock::time_point::max();
  for (const auto& guest : guests_) {
    if (guest->newcomer()) end = std::min(end, guest->end());
  }
  const auto now = Clock::now();
  if (listener_ && listens_again_ > now) end = std::min(end, listens_again_);
  if (end == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<milliseconds>(end - now).count();
  return static_cast<int>(std::max<int64_t>(left, 0));
}

DoorAnswer AskDoor(const SocketAddress& door,
                   const Agreement& agreement,
                   milliseconds patience) {
  const Socket socket = Dial(door);
  if (!socket) return DoorAnswer::kNobody;
  const auto handshake = HandshakeOfRank(agreement);
  const auto end = Clock::now() + patience;
  bool asked = false;
  std::string said;
  while (true) {
    const auto left =
        std::chrono::ceil<milliseconds>(end - Clock::now()).count();
    pollfd wait{socket.get(), POLLIN, 0};
    if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left)) == 0) {
      return asked || !Connected(socket) ? DoorAnswer::kNobody
                                         : DoorAnswer::kSilent;
    }
    switch (HearMore(socket, handshake->Expected(), said)) {
      case Heard::kEnd:
        return DoorAnswer::kNobody;
      case Heard::kMore:
        continue;
      case Heard::kAll:
        break;
    }
    const Handshake::Reply reply = handshake->Hear(std::exchange(said, ""));
    if (reply.verdict == Handshake::Verdict::kRight) return DoorAnswer::kRight;
    if (reply.verdict == Handshake::Verdict::kWrong) return DoorAnswer::kWrong;
    if (!Say(socket, reply.text)) return DoorAnswer::kNobody;
    asked = true;
  }
}

bool AsksForSecret(const SocketAddress& there) {
  // A door speaks first, and at once; a store never does.
  constexpr milliseconds kPatience(300);
  const Socket socket = Dial(there);
  pollfd wait{socket.get(), POLLIN, 0};
  std::string said;
  return socket && ::poll(&wait, 1, kPatience.count()) == 1 &&
         HearMore(socket, ChallengeBegin().size(), said) == Heard::kAll &&
         said == ChallengeBegin();
}

}  // namespace trainfare::trainer
