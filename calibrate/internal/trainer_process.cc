#include "calibrate/internal/trainer_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "model/error.h"

// NOLINTNEXTLINE(readability-identifier-naming): the C library's name.
extern char** environ;

namespace trainfare::calibrate::internal {
namespace {

using Clock = std::chrono::steady_clock;
using model::InputError;

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

std::atomic<bool> signal_received{false};
std::array<int, 2> wake_pipe = {-1, -1};
std::array<struct sigaction, kSignals.size()> former_actions;
struct sigaction former_pipe_action;

extern "C" void NoteSignal(int) {
  const int error = errno;
  signal_received.store(true);
  const char byte = 0;
  // A full pipe already wakes whoever waits.
  [[maybe_unused]] const ssize_t written = ::write(wake_pipe[1], &byte, 1);
  errno = error;
}

std::string ErrorText(int error) {
  return std::error_code(error, std::generic_category()).message();
}

void CloseIfOpen(int& descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

struct Pipe {
  int read = -1;
  int write = -1;

  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw InputError("the trainer cannot be started: " + ErrorText(errno));
    }
    read = ends[0];
    write = ends[1];
  }
  ~Pipe() {
    CloseIfOpen(read);
    CloseIfOpen(write);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
};

// The last line that says something.
std::string LastLine(const std::string& text) {
  const size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return "";
  const size_t start = text.find_last_of('\n', end);
  const size_t first = start == std::string::npos ? 0 : start + 1;
  return text.substr(first, end + 1 - first);
}

}  // namespace

SignalGuard::SignalGuard() {
  signal_received.store(false);
  if (::pipe2(wake_pipe.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    throw InputError("cannot watch for signals: " + ErrorText(errno));
  }
  struct sigaction action {};
  action.sa_handler = &NoteSignal;
  ::sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &action, &former_actions[i]);
  }
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &former_pipe_action);
}

SignalGuard::~SignalGuard() {
  for (size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &former_actions[i], nullptr);
  }
  ::sigaction(SIGPIPE, &former_pipe_action, nullptr);
  CloseIfOpen(wake_pipe[0]);
  CloseIfOpen(wake_pipe[1]);
}

bool SignalGuard::Received() { return signal_received.load(); }
int SignalGuard::descriptor() { return wake_pipe[0]; }

struct TrainerProcess::State {
  std::string program;
  Pipe requests;
  Pipe answers;
  Pipe errors;
  pid_t pid = -1;
  std::string buffer;      // answers not yet handed out
  std::string error_text;  // what it said on its standard error

  std::optional<std::string> TakeLine() {
    const size_t end = buffer.find('\n');
    if (end == std::string::npos) return std::nullopt;
    std::string line = buffer.substr(0, end);
    buffer.erase(0, end + 1);
    return line;
  }

  // Reads what there is; false once the other end is closed.
  static bool Drain(int& descriptor, std::string& into) {
    std::array<char, 65536> chunk{};
    const ssize_t count = ::read(descriptor, chunk.data(), chunk.size());
    if (count > 0) {
      into.append(chunk.data(), static_cast<size_t>(count));
      return true;
    }
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    CloseIfOpen(descriptor);
    return false;
  }

  enum class Event { kLine, kTimeout, kSignal, kEnded };
  // Waits for a whole line of answers.
  Event Wait(Clock::time_point until, bool watch_signals) {
    while (true) {
      if (buffer.find('\n') != std::string::npos) return Event::kLine;
      if (answers.read < 0) return Event::kEnded;
      if (watch_signals && SignalGuard::Received()) return Event::kSignal;
      const double left =
          std::chrono::duration<double>(until - Clock::now()).count();
      if (left <= 0.0) return Event::kTimeout;
      std::array<pollfd, 3> watched = {
          pollfd{answers.read, POLLIN, 0},
          pollfd{errors.read, POLLIN, 0},
          pollfd{watch_signals ? SignalGuard::descriptor() : -1, POLLIN, 0}};
      // A negative descriptor is left out by poll.
      const int ready =
          ::poll(watched.data(),
                 watched.size(),
                 static_cast<int>(std::min(left * 1e3 + 1.0, 1e9)));
      if (ready < 0 && errno != EINTR) return Event::kEnded;
      if (ready <= 0) continue;
      if (watched[1].revents != 0) Drain(errors.read, error_text);
      if (watched[0].revents != 0) Drain(answers.read, buffer);
    }
  }

  // Waits until the child has ended and ends it itself after `until`; how it
  // ended, in words.
  std::string Reap(Clock::time_point until) {
    int status = 0;
    while (true) {
      const pid_t ended = ::waitpid(pid, &status, WNOHANG);
      if (ended == pid || (ended < 0 && errno != EINTR)) break;
      if (Clock::now() >= until) ::kill(pid, SIGKILL);
      ::poll(nullptr, 0, 5);
    }
    pid = -1;
    // What is there, not until all writers closed: it may have children.
    pollfd said_more{errors.read, POLLIN, 0};
    while (errors.read >= 0 && ::poll(&said_more, 1, 0) > 0) {
      if (!Drain(errors.read, error_text)) break;
    }
    std::string how =
        WIFSIGNALED(status)
            ? fmt::format("was ended by signal {}", WTERMSIG(status))
            : fmt::format("ended with exit code {}", WEXITSTATUS(status));
    const std::string said = LastLine(error_text);
    return said.empty() ? how : fmt::format("{}: {}", how, said);
  }
};

TrainerProcess::TrainerProcess(const std::string& program)
    : state_(std::make_unique<State>()) {
  state_->program = program;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(
      &actions, state_->requests.read, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(
      &actions, state_->answers.write, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(
      &actions, state_->errors.write, STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  // It must not inherit that we ignore SIGPIPE.
  sigset_t defaults;
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGPIPE);
  for (const int signal : kSignals) ::sigaddset(&defaults, signal);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  std::array<std::string, 6> words = {
      program, "measure", "--plan", "-", "--out", "-"};
  std::array<char*, words.size() + 1> arguments{};
  for (size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  const int error = ::posix_spawn(&state_->pid,
                                  program.c_str(),
                                  &actions,
                                  &attributes,
                                  arguments.data(),
                                  environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    state_->pid = -1;
    throw InputError(
        fmt::format("{}: cannot be started: {}", program, ErrorText(error)));
  }
  CloseIfOpen(state_->requests.read);
  CloseIfOpen(state_->answers.write);
  CloseIfOpen(state_->errors.write);
}

TrainerProcess::~TrainerProcess() {
  if (state_->pid < 0) return;
  CloseIfOpen(state_->requests.write);  // end of input: it ends by itself
  state_->Reap(Clock::now() + std::chrono::milliseconds(500));
}

void TrainerProcess::Send(const std::string& line) {
  std::string text = line + "\n";
  std::string_view left = text;
  while (!left.empty()) {
    const ssize_t written =
        ::write(state_->requests.write, left.data(), left.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      // It is gone; why, Receive() says.
      return;
    }
    left.remove_prefix(static_cast<size_t>(written));
  }
}

std::optional<std::string> TrainerProcess::Receive(
    std::chrono::duration<double> limit) {
  const auto until =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
  switch (state_->Wait(until, /*watch_signals=*/true)) {
    case State::Event::kLine:
      return state_->TakeLine();
    case State::Event::kTimeout:
    case State::Event::kSignal:
      return std::nullopt;
    case State::Event::kEnded:
      break;
  }
  throw InputError(
      fmt::format("{} {}",
                  state_->program,
                  state_->Reap(Clock::now() + std::chrono::seconds(2))));
}

std::optional<std::string> TrainerProcess::Stop(
    std::chrono::duration<double> grace) {
  if (state_->pid < 0) return std::nullopt;
  ::kill(state_->pid, SIGTERM);
  const auto until =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(grace);
  const State::Event event = state_->Wait(until, /*watch_signals=*/false);
  if (event == State::Event::kTimeout) ::kill(state_->pid, SIGKILL);
  std::optional<std::string> line = state_->TakeLine();
  state_->Reap(Clock::now() + std::chrono::seconds(2));
  return line;
}

}  // namespace trainfare::calibrate::internal
