#include "calibrate/session/trainer_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <vector>

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

}  // namespace

// Both ends, closed at the latest with it.
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

namespace {

// The last line that says something.
std::string LastLine(const std::string& text) {
  const size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return "";
  const size_t start = text.find_last_of('\n', end);
  const size_t first = start == std::string::npos ? 0 : start + 1;
  return text.substr(first, end + 1 - first);
}

// One that nobody listens on at the moment. Should another program take it
// first, the trainer says so.
int FreePort() {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const bool found =
      descriptor >= 0 &&
      ::bind(descriptor, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
      ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) ==
          0;
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (!found) {
    throw InputError("no port for the ranks to meet at: " + ErrorText(error));
  }
  return ntohs(address.sin_port);
}

// This process' environment, and for one of several ranks its place.
std::vector<std::string> EnvironmentOf(int64_t rank, int64_t ranks, int port) {
  std::vector<std::string> variables;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view text = *one;
    const auto names = [&](std::string_view name) {
      return text.size() > name.size() && text.starts_with(name) &&
             text[name.size()] == '=';
    };
    // A launcher may have started this program, too.
    if (names("RANK") || names("WORLD_SIZE") || names("LOCAL_RANK") ||
        names("LOCAL_WORLD_SIZE") || names("MASTER_ADDR") ||
        names("MASTER_PORT") || names("TORCHELASTIC_USE_AGENT_STORE")) {
      continue;
    }
    variables.emplace_back(text);
  }
  if (ranks == 1) return variables;
  variables.push_back(fmt::format("RANK={}", rank));
  variables.push_back(fmt::format("WORLD_SIZE={}", ranks));
  variables.push_back(fmt::format("LOCAL_RANK={}", rank));
  variables.push_back(fmt::format("LOCAL_WORLD_SIZE={}", ranks));
  variables.emplace_back("MASTER_ADDR=127.0.0.1");
  variables.push_back(fmt::format("MASTER_PORT={}", port));
  return variables;
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
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
  std::vector<pid_t> pids;  // by rank
  bool ended_well = false;
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

  void Tell(int signal) const {
    for (const pid_t pid : pids) ::kill(pid, signal);
  }

  // Waits until the children have ended and ends them itself after `until`; how
  // rank 0 ended, or else the first that did not end well, in words.
  std::string Reap(Clock::time_point until) {
    int chief = 0;
    bool first = true;
    for (const pid_t pid : pids) {
      int status = 0;
      while (true) {
        const pid_t gone = ::waitpid(pid, &status, WNOHANG);
        if (gone == pid || (gone < 0 && errno != EINTR)) break;
        if (Clock::now() >= until) ::kill(pid, SIGKILL);
        ::poll(nullptr, 0, 5);
      }
      if (first || chief == 0) chief = status;
      first = false;
    }
    pids.clear();
    ended_well = WIFEXITED(chief) && WEXITSTATUS(chief) == 0;
    // What is there, not until all writers closed: it may have children.
    pollfd said_more{errors.read, POLLIN, 0};
    while (errors.read >= 0 && ::poll(&said_more, 1, 0) > 0) {
      if (!Drain(errors.read, error_text)) break;
    }
    std::string how =
        WIFSIGNALED(chief)
            ? fmt::format("was ended by signal {}", WTERMSIG(chief))
            : fmt::format("ended with exit code {}", WEXITSTATUS(chief));
    const std::string said = LastLine(error_text);
    return said.empty() ? how : fmt::format("{}: {}", how, said);
  }

  // One child; of ranks beyond the first nobody asks and none is heard.
  void Start(const TrainerCommand& command, int64_t rank, int port) {
    std::vector<std::string> words = {command.program};
    words.insert(
        words.end(), command.arguments.begin(), command.arguments.end());
    std::vector<std::string> variables =
        EnvironmentOf(rank, command.ranks, port);
    const std::vector<char*> arguments = Pointers(words);
    const std::vector<char*> environment = Pointers(variables);
    Pipe refusal;  // closed by the start of the program, else errno
    // No handler of ours may run in the child.
    sigset_t all;
    sigset_t former;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &former);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) {
      Become(arguments, environment, rank == 0, parent, former);
      const int error = errno;
      // A parent that has ended reads no more.
      [[maybe_unused]] const ssize_t written =
          ::write(refusal.write, &error, sizeof(error));
      ::_exit(127);
    }
    int error = pid < 0 ? errno : 0;
    ::pthread_sigmask(SIG_SETMASK, &former, nullptr);
    if (pid > 0) {
      CloseIfOpen(refusal.write);
      while (::read(refusal.read, &error, sizeof(error)) < 0 &&
             errno == EINTR) {
      }
      pids.push_back(pid);
    }
    if (error != 0) {
      Reap(Clock::now());  // those that were started
      throw InputError(fmt::format(
          "{}: cannot be started: {}", command.program, ErrorText(error)));
    }
  }

  // The child turns into the program; returns, with errno, only where that
  // fails. Between fork and exec nothing may allocate or lock.
  void Become(const std::vector<char*>& arguments,
              const std::vector<char*>& environment,
              bool answers_us,
              pid_t parent,
              const sigset_t& mask) const {
    // Killed along with us, also by what cannot be caught: the signal is sent
    // when the thread that forked ends, which here is the main one. A parent
    // that ended before is seen by the second call.
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent) {
      ::_exit(127);
    }
    ::setpgid(0, 0);
    // It must not inherit what we ignore.
    ::signal(SIGPIPE, SIG_DFL);
    ::signal(SIGXFSZ, SIG_DFL);
    for (const int signal : kSignals) ::signal(signal, SIG_DFL);
    const int in = answers_us ? requests.read : ::open("/dev/null", O_RDONLY);
    const int out = answers_us ? answers.write : ::open("/dev/null", O_WRONLY);
    if (in < 0 || out < 0 || ::dup2(in, STDIN_FILENO) < 0 ||
        ::dup2(out, STDOUT_FILENO) < 0 ||
        ::dup2(errors.write, STDERR_FILENO) < 0) {
      return;
    }
    ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    ::execve(arguments.front(), arguments.data(), environment.data());
  }
};

TrainerProcess::TrainerProcess(const TrainerCommand& command)
    : state_(std::make_unique<State>()) {
  ENSURE(command.ranks >= 1, "a trainer is one rank at least");
  state_->program = command.program;
  const int port = command.ranks > 1 ? FreePort() : 0;
  for (int64_t rank = 0; rank < command.ranks; ++rank) {
    state_->Start(command, rank, port);
  }
  CloseIfOpen(state_->requests.read);
  CloseIfOpen(state_->answers.write);
  CloseIfOpen(state_->errors.write);
}

TrainerProcess::~TrainerProcess() {
  if (state_->pids.empty()) return;
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
  std::optional<std::string> line = ReceiveUntilEnd(limit);
  if (!line && ended()) {
    throw InputError(fmt::format("{} ended with exit code 0", state_->program));
  }
  return line;
}

std::optional<std::string> TrainerProcess::ReceiveUntilEnd(
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
  const std::string how = state_->Reap(Clock::now() + std::chrono::seconds(2));
  if (state_->ended_well) return std::nullopt;
  throw InputError(fmt::format("{} {}", state_->program, how));
}

bool TrainerProcess::ended() const { return state_->pids.empty(); }

std::optional<std::string> TrainerProcess::Stop(
    std::chrono::duration<double> grace) {
  if (state_->pids.empty()) return std::nullopt;
  state_->Tell(SIGTERM);
  const auto until =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(grace);
  const State::Event event = state_->Wait(until, /*watch_signals=*/false);
  if (event == State::Event::kTimeout) state_->Tell(SIGKILL);
  state_->Reap(Clock::now() + std::chrono::seconds(2));
  pollfd wrote_more{state_->answers.read, POLLIN, 0};
  while (state_->answers.read >= 0 && ::poll(&wrote_more, 1, 0) > 0) {
    if (!State::Drain(state_->answers.read, state_->buffer)) break;
  }
  return state_->TakeLine();
}

std::optional<std::string> TrainerProcess::TakeReceived() {
  return state_->TakeLine();
}

}  // namespace trainfare::calibrate::internal
