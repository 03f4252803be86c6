#include "trainer/ranks/ranks.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "model/error.h"

namespace trainfare::trainer {
namespace {

using model::InputError;

// PyTorch's own default.
constexpr int kDefaultPort = 29500;

class Reader {
 public:
  Reader(const Environment& get, std::string launcher)
      : get_(get), launcher_(std::move(launcher)) {}

  bool Has(const char* name) const { return get_(name).has_value(); }

  std::string Text(const char* name, const char* beside) const {
    const std::optional<std::string> text = get_(name);
    if (!text || text->empty()) {
      throw InputError(
          fmt::format("{}: missing, though {} is set; start the ranks with {}",
                      name,
                      beside,
                      launcher_));
    }
    return *text;
  }

  int Count(const char* name, int least, int most, const char* beside) const {
    const std::string text = Text(name, beside);
    int value = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() ||
        value < least || value > most) {
      throw InputError(
          fmt::format("{}: expected an integer from {} to {}, got \"{}\"",
                      name,
                      least,
                      most,
                      text));
    }
    return value;
  }
  int Count(
      const char* name, int least, int most, int fallback, const char*) const {
    return Has(name) ? Count(name, least, most, name) : fallback;
  }

 private:
  const Environment& get_;
  std::string launcher_;
};

constexpr int kMostRanks = 1'000'000;

// Rank and size are checked together: a rank past the end meets nobody.
void ReadRank(const Reader& reader,
              const char* rank,
              const char* size,
              RankPlace& place) {
  place.world_size = reader.Count(size, 1, kMostRanks, rank);
  place.rank = reader.Count(rank, 0, place.world_size - 1, size);
}

uint16_t ReadPort(const Reader& reader, int fallback) {
  return static_cast<uint16_t>(
      reader.Count("MASTER_PORT", 1, 65535, fallback, ""));
}

RankPlace FromTorchrun(const Environment& get) {
  const Reader reader(get, "torchrun");
  RankPlace place;
  place.launcher = "torchrun";
  ReadRank(reader, "RANK", "WORLD_SIZE", place);
  place.local_rank = reader.Count("LOCAL_RANK", 0, kMostRanks, 0, "");
  place.local_world_size =
      reader.Count("LOCAL_WORLD_SIZE", 1, kMostRanks, 1, "");
  if (place.world_size == 1) return place;
  place.store_host = reader.Text("MASTER_ADDR", "WORLD_SIZE");
  reader.Text("MASTER_PORT", "MASTER_ADDR");
  place.store_port = ReadPort(reader, kDefaultPort);
  place.launcher_store =
      get("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True";
  place.attempt = get("TORCHELASTIC_RESTART_COUNT").value_or("0");
  return place;
}

RankPlace FromOpenMpi(const Environment& get) {
  const Reader reader(get, "mpirun");
  RankPlace place;
  place.launcher = "Open MPI";
  ReadRank(reader, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", place);
  place.local_rank =
      reader.Count("OMPI_COMM_WORLD_LOCAL_RANK", 0, kMostRanks, 0, "");
  place.local_world_size =
      reader.Count("OMPI_COMM_WORLD_LOCAL_SIZE", 1, kMostRanks, 1, "");
  if (place.world_size == 1) return place;
  if (!reader.Has("MASTER_ADDR") &&
      place.local_world_size == place.world_size) {
    place.store_host = "127.0.0.1";  // all of them are here
  } else if (!reader.Has("MASTER_ADDR")) {
    throw InputError(
        "MASTER_ADDR: missing: Open MPI does not say where rank 0 is; hint: "
        "mpirun -x MASTER_ADDR=HOST -x MASTER_PORT=29500");
  } else {
    place.store_host = reader.Text("MASTER_ADDR", "OMPI_COMM_WORLD_SIZE");
  }
  place.store_port = ReadPort(reader, kDefaultPort);
  return place;
}

RankPlace FromSlurm(const Environment& get) {
  const Reader reader(get, "srun");
  RankPlace place;
  place.launcher = "Slurm";
  ReadRank(reader, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", place);
  place.local_rank = reader.Count("SLURM_LOCALID", 0, kMostRanks, 0, "");
  if (place.world_size == 1) return place;
  if (reader.Has("MASTER_ADDR")) {
    place.store_host = reader.Text("MASTER_ADDR", "SLURM_PROCID");
  } else {
    const char* list = reader.Has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST"
                                                         : "SLURM_JOB_NODELIST";
    place.store_host = FirstHost(reader.Text(list, "SLURM_PROCID"));
  }
  // Two jobs may share a host: each its own port, the same for all its ranks.
  constexpr int kFirstPort = 20000;
  constexpr int kPorts = 10000;
  const int job = reader.Count("SLURM_JOB_ID", 0, 2'000'000'000, 0, "");
  place.store_port = ReadPort(reader, kFirstPort + job % kPorts);
  // Tasks of this host: "4(x2),3" lists them by node; equal ones are enough.
  if (const auto tasks = get("SLURM_STEP_TASKS_PER_NODE")) {
    int value = 0;
    std::from_chars(tasks->data(), tasks->data() + tasks->size(), value);
    if (value > 0) place.local_world_size = value;
  }
  place.attempt = get("SLURM_STEP_ID").value_or("0");
  return place;
}

}  // namespace

std::optional<std::string> EnvironmentVariable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

std::string FirstHost(const std::string& node_list) {
  const size_t bracket = node_list.find('[');
  const size_t comma = node_list.find(',');
  if (bracket == std::string::npos || comma < bracket) {
    return node_list.substr(0, comma);
  }
  const size_t end = node_list.find_first_of("-,]", bracket);
  if (end == std::string::npos) return node_list;
  return node_list.substr(0, bracket) +
         node_list.substr(bracket + 1, end - bracket - 1);
}

std::optional<RankPlace> RankFromEnvironment(const Environment& get) {
  if (get("RANK") || get("WORLD_SIZE")) return FromTorchrun(get);
  if (get("OMPI_COMM_WORLD_RANK") || get("OMPI_COMM_WORLD_SIZE")) {
    return FromOpenMpi(get);
  }
  // Only srun sets the second; a batch script itself has a SLURM_PROCID, too.
  if (get("SLURM_STEP_NUM_TASKS")) return FromSlurm(get);
  return std::nullopt;
}

}  // namespace trainfare::trainer
