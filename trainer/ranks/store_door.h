#pragma once

// What stands before rank 0's store where ranks are on several hosts and agreed
// upon a secret: c10d's store lists, tells and takes keys of whoever reaches
// it. It listens on rank 0's loopback; at the address that the ranks were given
// a door listens, which lets in who knows the secret (secret_handshake.h). The
// other ranks' clients of the store, which cannot prove anything, connect to a
// relay in their own process, which does.
//
//   client - relay (loopback) ---- network ---- door - store (loopback)
//
// Bytes behind the handshake are handed on as they are, in the clear. Not kept
// out are the users of rank 0's host, who reach its loopback.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "trainer/ranks/secret_handshake.h"
#include "trainer/ranks/sockets.h"

namespace trainfare::trainer {

struct DoorLimits {
  // For a whole handshake.
  std::chrono::milliseconds handshake{5000};
  // Who came and proved nothing yet; the one that is here for longest goes
  // when another comes.
  size_t newcomers = 256;
};

// A door or a relay; one thread, until it is destroyed.
class StoreDoor {
 public:
  // The door at `listener`; `store` is where the store listens.
  static std::unique_ptr<StoreDoor> Open(Socket listener,
                                         const SocketAddress& store,
                                         const Agreement& agreement,
                                         const DoorLimits& limits = {});
  // The relay to the door at `door`, for connections of this user's processes.
  // Throws InputError where this host has no loopback.
  static std::unique_ptr<StoreDoor> OpenRelay(const SocketAddress& door,
                                              const Agreement& agreement,
                                              const DoorLimits& limits = {});
  // What the store has said by now still goes out.
  ~StoreDoor();
  StoreDoor(const StoreDoor&) = delete;
  StoreDoor& operator=(const StoreDoor&) = delete;

  uint16_t port() const { return port_; }  // where it listens
  // Soon nobody is let in any more; who is in stays.
  void Close();

 private:
  class Flow;
  class Guest;
  struct Rules {
    std::function<std::unique_ptr<Handshake>()> handshake;
    SocketAddress beyond;  // where who is let in is led to
    bool is_door = true;   // who comes has to prove itself, else who is beyond
    DoorLimits limits;
  };
  StoreDoor(Socket listener, uint16_t port, Rules rules);

  void Run();
  void Round();
  void LetIn();
  // One that came, or null where it is turned away.
  std::unique_ptr<Guest> Receive(Socket socket) const;
  bool DropOldestNewcomer();
  size_t Newcomers() const;
  int MillisecondsToWait() const;
  void Wake() const;

  uint16_t port_;
  Rules rules_;
  Socket wake_;  // an eventfd
  std::atomic<bool> closes_{false};
  std::atomic<bool> ends_{false};
  // Of the thread alone.
  Socket listener_;
  std::chrono::steady_clock::time_point listens_again_{};
  std::vector<std::unique_ptr<Guest>> guests_;  // in the order of their coming
  std::thread thread_;
};

// What a rank finds where rank 0 should be.
enum class DoorAnswer {
  kNobody,  // nobody listens, or was cut off: to be asked again
  kSilent,  // somebody who asks for no secret
  kWrong,   // the secrets differ
  kRight,
};
// Knocks once. `handshake`: see DoorLimits.
DoorAnswer AskDoor(
    const SocketAddress& door,
    const Agreement& agreement,
    std::chrono::milliseconds handshake = DoorLimits{}.handshake);

// Whether a door is there, which a rank without a secret does not get through.
bool AsksForSecret(const SocketAddress& there);

}  // namespace trainfare::trainer
