#pragma once

// Which of several ranks this process is, as its launcher says.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace trainfare::trainer {

struct RankPlace {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;        // among the ranks of this host
  int local_world_size = 1;  // ranks of this host; 1 where nobody says
  std::string store_host;    // where the ranks meet; empty for one rank
  uint16_t store_port = 0;
  bool launcher_store = false;  // torchrun serves the meeting point itself
  std::string attempt;          // restarts must not meet each other's leftovers
  std::string launcher;         // "torchrun", "Open MPI" or "Slurm"
};

using Environment = std::function<std::optional<std::string>(const char*)>;
// A variable of this process's environment; nullopt: not set.
std::optional<std::string> EnvironmentVariable(const char* name);

// From torchrun's variables, Open MPI's or Slurm's, in this order: mpirun
// inside a Slurm job leaves both. nullopt where none of them started us.
// Throws InputError that names the variable which is missing or wrong.
std::optional<RankPlace> RankFromEnvironment(
    const Environment& get = EnvironmentVariable);

// The first host of Slurm's compressed lists: "n[03-05,9],x" is n03.
std::string FirstHost(const std::string& node_list);

}  // namespace trainfare::trainer
