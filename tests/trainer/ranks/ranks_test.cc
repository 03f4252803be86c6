#include "trainer/ranks/ranks.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "model/error.h"
#include "tests/near.h"
#include "trainer/ranks/gathering.h"

namespace trainfare::trainer {
namespace {

std::optional<RankPlace> Place(const std::map<std::string, std::string>& set) {
  return RankFromEnvironment(
      [&](const char* name) -> std::optional<std::string> {
        const auto found = set.find(name);
        if (found == set.end()) return std::nullopt;
        return found->second;
      });
}

std::string Message(const std::map<std::string, std::string>& set) {
  try {
    Place(set);
  } catch (const model::InputError& error) {
    return error.what();
  }
  return "";
}

DOCTEST_TEST_CASE("a process that no launcher started is alone") {
  DOCTEST_CHECK_FALSE(Place({}).has_value());
  DOCTEST_CHECK_FALSE(Place({{"MASTER_ADDR", "a"}}).has_value());
  // sbatch runs its script with this, and starts no rank by it.
  DOCTEST_CHECK_FALSE(
      Place({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).has_value());
}

DOCTEST_TEST_CASE("torchrun's variables") {
  const auto place = Place({{"RANK", "5"},
                            {"WORLD_SIZE", "8"},
                            {"LOCAL_RANK", "1"},
                            {"LOCAL_WORLD_SIZE", "4"},
                            {"MASTER_ADDR", "node-3"},
                            {"MASTER_PORT", "29511"},
                            {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                            {"TORCHELASTIC_RESTART_COUNT", "2"}});
  DOCTEST_REQUIRE(place.has_value());
  DOCTEST_CHECK(place->rank == 5);
  DOCTEST_CHECK(place->world_size == 8);
  DOCTEST_CHECK(place->local_rank == 1);
  DOCTEST_CHECK(place->local_world_size == 4);
  DOCTEST_CHECK(place->store_host == "node-3");
  DOCTEST_CHECK(place->store_port == 29511);
  DOCTEST_CHECK(place->launcher_store);
  DOCTEST_CHECK(place->attempt == "2");
}

DOCTEST_TEST_CASE("one rank needs no meeting point") {
  const auto place = Place({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  DOCTEST_REQUIRE(place.has_value());
  DOCTEST_CHECK(place->world_size == 1);
}

DOCTEST_TEST_CASE("Open MPI comes before the Slurm job around it") {
  const std::map<std::string, std::string> inside = {
      {"OMPI_COMM_WORLD_RANK", "3"},
      {"OMPI_COMM_WORLD_SIZE", "4"},
      {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
      {"SLURM_PROCID", "0"},
      {"SLURM_STEP_NUM_TASKS", "2"}};
  const auto place = Place(inside);
  DOCTEST_REQUIRE(place.has_value());
  DOCTEST_CHECK(place->launcher == "Open MPI");
  DOCTEST_CHECK(place->rank == 3);
  DOCTEST_CHECK(place->store_host == "127.0.0.1");
  DOCTEST_CHECK(place->store_port == 29500);
  const std::map<std::string, std::string> apart = {
      {"OMPI_COMM_WORLD_RANK", "3"},
      {"OMPI_COMM_WORLD_SIZE", "4"},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  DOCTEST_CHECK(Message(apart) ==
                "MASTER_ADDR: missing: Open MPI does not say where rank 0 is; "
                "hint: mpirun -x MASTER_ADDR=HOST -x MASTER_PORT=29500");
}

DOCTEST_TEST_CASE("Slurm's step") {
  const auto place = Place({{"SLURM_PROCID", "2"},
                            {"SLURM_STEP_NUM_TASKS", "4"},
                            {"SLURM_LOCALID", "0"},
                            {"SLURM_JOB_ID", "123456"},
                            {"SLURM_STEP_ID", "1"},
                            {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                            {"SLURM_STEP_NODELIST", "gpu[07-08]"}});
  DOCTEST_REQUIRE(place.has_value());
  DOCTEST_CHECK(place->rank == 2);
  DOCTEST_CHECK(place->world_size == 4);
  DOCTEST_CHECK(place->local_world_size == 2);
  DOCTEST_CHECK(place->store_host == "gpu07");
  DOCTEST_CHECK(place->store_port == 23456);  // 20000 + 123456 mod 10000
  DOCTEST_CHECK(place->attempt == "1");
}

DOCTEST_TEST_CASE("the first host of a list") {
  DOCTEST_CHECK(FirstHost("a") == "a");
  DOCTEST_CHECK(FirstHost("a,b[1-2]") == "a");
  DOCTEST_CHECK(FirstHost("n[03-05,9],x") == "n03");
  DOCTEST_CHECK(FirstHost("n[7,9]") == "n7");
  DOCTEST_CHECK(FirstHost("rack1-n[12]") == "rack1-n12");
}

DOCTEST_TEST_CASE("what is missing or wrong is named") {
  DOCTEST_CHECK(
      Message({{"RANK", "0"}}) ==
      "WORLD_SIZE: missing, though RANK is set; start the ranks with torchrun");
  DOCTEST_CHECK(
      Message({{"WORLD_SIZE", "2"}}) ==
      "RANK: missing, though WORLD_SIZE is set; start the ranks with torchrun");
  DOCTEST_CHECK(Message({{"RANK", "2"}, {"WORLD_SIZE", "2"}}) ==
                "RANK: expected an integer from 0 to 1, got \"2\"");
  DOCTEST_CHECK(Message({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}) ==
                "RANK: expected an integer from 0 to 1, got \"-1\"");
  DOCTEST_CHECK(Message({{"RANK", "0"}, {"WORLD_SIZE", "two"}}) ==
                "WORLD_SIZE: expected an integer from 1 to 1000000, got "
                "\"two\"");
  DOCTEST_CHECK(Message({{"RANK", "0"}, {"WORLD_SIZE", "2"}}) ==
                "MASTER_ADDR: missing, though WORLD_SIZE is set; start the "
                "ranks with torchrun");
  DOCTEST_CHECK(Message({{"RANK", "0"},
                         {"WORLD_SIZE", "2"},
                         {"MASTER_ADDR", "a"},
                         {"MASTER_PORT", "99999"}}) ==
                "MASTER_PORT: expected an integer from 1 to 65535, got "
                "\"99999\"");
  DOCTEST_CHECK(Message({{"SLURM_STEP_NUM_TASKS", "2"}}) ==
                "SLURM_PROCID: missing, though SLURM_STEP_NUM_TASKS is set; "
                "start the ranks with srun");
}

DOCTEST_TEST_CASE("ranks of one host wait from the start of the process on") {
  using std::chrono::seconds;
  RankPlace here;
  here.world_size = here.local_world_size = 2;
  const auto left = [](const Gathering& gathering) {
    return static_cast<double>(gathering.left().count()) / 1000.0;
  };
  DOCTEST_CHECK(left(Gathering(here, std::nullopt, seconds(4))) ==
                Near(16, 0.01));
  // Its like may have come as late.
  DOCTEST_CHECK(left(Gathering(here, std::nullopt, seconds(25))) ==
                Near(10, 1e-5));
  DOCTEST_CHECK(left(Gathering(here, seconds(60), seconds(25))) ==
                Near(60, 0.01));
  RankPlace apart = here;
  apart.local_world_size = 1;
  DOCTEST_CHECK(left(Gathering(apart, std::nullopt, seconds(25))) ==
                Near(120, 0.01));
  DOCTEST_CHECK(ProcessAge() > seconds(-1));
  DOCTEST_CHECK(ProcessAge() < seconds(3600));
}

}  // namespace
}  // namespace trainfare::trainer
