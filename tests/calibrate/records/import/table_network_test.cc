#include "calibrate/records/import/table_network.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "calibrate/records/import/table.h"
#include "model/error.h"
#include "tests/calibrate/records/import/table_rows.h"
#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

using model::InputError;

// Of a ring that gets 235 of 300: the network that would give it so much.
TEST_CASE("an all-reduce that was measured beside says what joins the hosts") {
  const Table table = ParseTable(
      "device,n_devices,nodes,model,hidden,layers,heads,seq_len,micro_batch,"
      "grad_accum,sharding,precision,framework,task,metric,value,"
      "bw_allreduce_gbs\n"
      "A100-SXM4-80GB,16,2,llama2-7b,,,,512,1,1,none,bf16,nanotron,pretrain,"
      "step_s,1,94\n",
      "d.csv");
  REQUIRE(table.observations.size() == 1);
  CHECK(table.observations[0].network->base() == Near(94e9 * 300 / 235, 1e-5));
}

TEST_CASE("a row says on how many hosts, and what joins them") {
  const auto row = [](std::string_view nodes, std::string_view stack) {
    return fmt::format(
        "src,readme,DGX-1,V100-SXM2-32GB,16,{},bert-large,1024,24,16,4096,"
        "30522,128,32,1,fp32,PyTorch,\"{}\",pretrain,sequences_per_s,387,n",
        nodes,
        stack);
  };
  const Observation four =
      OneRow(row("2", "x; 4 x 100 Gbit/s RoCE between nodes"));
  CHECK(four.hosts == 2);
  CHECK(four.network->base() == Near(50e9, 1e-5));
  CHECK(OneRow(row("2", "a 16, InfiniBand 100 Gbit/s between nodes"))
            .network->base() == Near(12.5e9, 1e-5));
  CHECK_FALSE(OneRow(row("2", "fast between nodes")).network.has_value());
  CHECK(OneRow(row("1", "100 Gbit/s between nodes")).hosts == 1);
  // Where a table has no column for them, adapters stand in the notes.
  CHECK(OneRow(
            row("2",
                "MLPerf; intra-node: NVLINK 600GB/s; host network: Management: "
                "1x Ethernet 40Gb/Sec  Compute: 8x IB HDR 200Gb/Sec"))
            .network->base() == Near(200e9, 1e-5));
  CHECK_THROWS_AS(ParseRows(row("3", "x") + "\n"), InputError);
}

TEST_CASE("a host's adapters are its network") {
  const auto network = [](const std::string& adapters) {
    const Table table = ParseTable(
        "device,n_devices,nodes,model,seq_len,batch_per_device,precision,"
        "framework,stack_notes,task,metric,value,notes,host_network\n"
        "V100-SXM2-32GB,16,2,bert-large,128,4,fp32,PyTorch,x,finetune,step_ms,"
        "900,,\"" +
            adapters + "\"\n",
        "t.csv");
    REQUIRE(table.observations.size() == 1);
    return table.observations[0].network;
  };
  CHECK(network("4x ConnectX-7 IB NDR 400Gb/Sec")->base() == Near(200e9, 1e-5));
  CHECK(network("Storage: 2x BF3 400Gb/s, Compute: 8 x ConnectX - 7 IB NDR 400 "
                "Gb / Sec, Management: 100Gb/s Ethernet NIC")
            ->base() == Near(400e9, 1e-5));
  CHECK(
      network("1x Ethernet 40Gb/Sec  8x ConnectX-6 IB HDR 200Gb/Sec")->base() ==
      Near(200e9, 1e-5));
  CHECK_FALSE(network("Infiniband, Ethernet").has_value());
  CHECK_FALSE(network("xGb, 100 Gb/s").has_value());
  CHECK_FALSE(network("").has_value());
}

TEST_CASE("a host's network is a rate, adapters, or a name without either") {
  const auto table = [](std::string_view cell) {
    return ParseTable(
        fmt::format(
            "device,n_devices,nodes,host_network,model,seq_len,"
            "batch_per_device,precision,sharding,framework,metric,value\n"
            "A100-SXM4-40GB,32,4,{},gpt2-xl,1024,8,fp16,none,PyTorch,"
            "step_s,1\n",
            cell),
        "t.csv");
  };
  const auto gigabits = [&](std::string_view cell) {
    const Table read = table(cell);
    CAPTURE(cell);
    REQUIRE(read.observations.size() == 1);
    const auto network = read.observations[0].network;
    return network ? network->base() * 8 / 1e9 : 0.0;
  };
  for (const auto& said : {std::pair{"10 GbE", 10.0},
                           std::pair{"100GbE", 100.0},
                           std::pair{"25 Gbps Ethernet", 25.0},
                           std::pair{"400 Gbps", 400.0},
                           std::pair{"3.2Tbps EFA", 3200.0},
                           std::pair{"EFA 3200 Gbps", 3200.0},
                           std::pair{"8 x 200 Gbit/s", 1600.0},
                           std::pair{"8x400G", 3200.0},
                           std::pair{"10G Ethernet", 10.0},
                           std::pair{"InfiniBand NDR", 0.0},
                           std::pair{"", 0.0}}) {
    CHECK(gigabits(said.first) == Near(said.second, 1e-5));
  }
  for (const char* other : {"1x Ethernet 10GB/Sec", "900 Mbit/s"}) {
    CAPTURE(other);
    const Table read = table(other);
    REQUIRE(read.unused.size() == 1);
    CHECK(read.unused.begin()->first ==
          fmt::format("host_network \"{}\" is not read: \"4x 100Gb/s\" is",
                      other));
  }
}

}  // namespace
}  // namespace trainfare::calibrate
