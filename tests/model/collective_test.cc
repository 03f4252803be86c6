#include "model/collective.h"

#include <doctest/doctest.h>

#include "tests/near.h"
#include "tests/units.h"

namespace trainfare::model {

TEST_CASE("a message has its latency and its bytes, by hand") {
  // 5 us, and 1 ms of 30 MB at 30 GB/s.
  const Seconds<> t =
      PointToPointTime<double>(MB(30.0), Microseconds(5.0), GBPerSecond(30.0));
  CHECK(ToMilliseconds(t) == Near(1.005, 1e-12));
}

TEST_CASE("a ring costs two passes of n - 1 steps") {
  // n = 4, 437.933 MB of fp32 gradients (109,483,778 parameters), 10 GB/s,
  // 5 us a step: 6 (5 us + 109.483778 MB / 10 GB/s) = 30 us + 65.6902668 ms.
  const Seconds<> t = RingAllReduceTime<double>(
      4, Byte(4.0 * 109483778.0), Microseconds(5.0), GBPerSecond(10.0));
  CHECK(ToMilliseconds(t) == Near(65.7202668, 1e-12));
}

TEST_CASE("one rank sends nothing") {
  CHECK(RingAllReduceTime<double>(
            1, GB(1.0), Microseconds(5.0), GBPerSecond(1.0)) == Seconds<>());
  CHECK_THROWS_AS(RingAllReduceTime<double>(
                      0, GB(1.0), Microseconds(5.0), GBPerSecond(1.0)),
                  std::logic_error);
}

TEST_CASE("without latency it is the bus bandwidth of nccl-tests") {
  // 2 (n - 1) / n S / t must be the link, for every n; of 8 ranks and 1 GB that
  // is 1.75 GB over the time.
  CHECK(BusBytes(Collective::kAllReduce, 8, GB(1.0)) == GB(1.75));
  CHECK(BusBytes(Collective::kReduceScatter, 8, GB(1.0)) == GB(0.875));
  for (int64_t n = 2; n <= 64; n *= 2) {
    const Seconds<> t =
        RingAllReduceTime<double>(n, GB(1.0), Seconds<>(), GBPerSecond(12.5));
    const BytesPerSecond<> bus =
        BusBytes(Collective::kAllReduce, n, GB(1.0)) / t;
    CHECK(bus.base() == Near(12.5e9, 1e-12));
    // A gather takes half as long and is counted with half the bytes.
    CHECK(BusBytes(Collective::kAllGather, n, GB(1.0)) / (0.5 * t) == bus);
  }
}

TEST_CASE("over hosts: one level alone is one ring, two pass both links") {
  const RingLevel<double> inside{Microseconds(2.0), GBPerSecond(100.0)};
  const RingLevel<double> across{Microseconds(20.0), GBPerSecond(5.0)};
  const Bytes<> size = MB(400.0);
  CHECK(AllReduceTime(8, 1, size, inside, across) ==
        RingAllReduceTime<double>(8, size, inside.step_latency, inside.link));
  CHECK(RingOverHostsTime(1, 4, size, inside, across) ==
        RingAllReduceTime<double>(4, size, across.step_latency, across.link));
  // 4 hosts of 8: 31 links, 3 of them between hosts, whose network is 40 GB/s:
  // 2 (28 x 2 us + 3 x 20 us) + 2 x 31/32 x 400 MB / 40 GB/s
  //     = 232 us + 19.375 ms.
  CHECK(ToMilliseconds(RingOverHostsTime(8, 4, size, inside, across)) ==
        Near(19.607, 1e-12));
  // Trees: 2 (7 x 2 us + 2 x 20 us) + 2 x 400 MB / 40 GB/s = 108 us + 20 ms.
  // Of two hosts each sends the message once, and the chains bind.
  CHECK(ToMilliseconds(TreeOverHostsTime(8, 4, size, inside, across)) ==
        Near(20.108, 1e-12));
  CHECK(ToMilliseconds(TreeOverHostsTime(8, 2, size, inside, across)) ==
        Near(0.068 + 10.0, 1e-12));
  // Three hosts need as many levels as four.
  CHECK(ToMicroseconds(TreeOverHostsTime(8, 3, Bytes<>(), inside, across)) ==
        Near(108.0, 1e-12));
  // Long messages go round, short ones over the trees.
  CHECK(AllReduceTime(8, 4, size, inside, across) ==
        RingOverHostsTime(8, 4, size, inside, across));
  CHECK(AllReduceTime(8, 4, MB(1.0), inside, across) ==
        TreeOverHostsTime(8, 4, MB(1.0), inside, across));
  // A network wider than the links of a host does not help.
  const RingLevel<double> wide{Microseconds(20.0), GBPerSecond(50.0)};
  CHECK(ToMilliseconds(RingOverHostsTime(8, 4, size, inside, wide)) ==
        Near(0.232 + 7.75, 1e-12));
}

// docs/models/data_parallel.md, "A switch that sums".
TEST_CASE("a switch that sums, by hand") {
  const RingLevel<double> inside{
      Microseconds(3.4), GBPerSecond(352.5), {0.8, Microseconds(25.0)}};
  const RingLevel<double> none;
  const Bytes<> size = GB(1.0);
  using enum Collective;
  CHECK(ToMilliseconds(SwitchTime(kAllReduce, 8, size, inside)) ==
        Near(0.025 + 1125.0 / 282.0, 1e-12));
  CHECK(AllReduceTime(8, 1, size, inside, none) ==
        SwitchTime(kAllReduce, 8, size, inside));
  // Of two the ring is faster: 1 against 1.5 / 0.8 of the message.
  CHECK(AllReduceTime(2, 1, size, inside, none) ==
        RingOverHostsTime(2, 1, size, inside, none));
  CHECK(AllReduceTime(1, 1, size, inside, none) == Seconds<>());
  // A gather sends as much either way: of 72 in a rack short ones are faster.
  CHECK(GatherOverHostsTime(8, 1, size, inside, none) ==
        0.5 * RingOverHostsTime(8, 1, size, inside, none));
  CHECK(ToMilliseconds(GatherOverHostsTime(72, 1, MB(72.0), inside, none)) ==
        Near(0.025 + 71.0 / 282.0, 1e-12));
  // Two hosts of 8: 25 us and twice 20 us, then 9/8 of the message over links
  // of 282 GB/s, beside which the network has more to do: all of it at 320.
  const RingLevel<double> across{Microseconds(20.0), GBPerSecond(40.0)};
  CHECK(ToMilliseconds(TreeOverHostsTime(8, 2, size, inside, across)) ==
        Near(0.065 + 1125.0 / 282.0, 1e-12));
  // Four: the network, twice the message at 320 GB/s.
  CHECK(ToMilliseconds(TreeOverHostsTime(8, 4, size, inside, across)) ==
        Near(0.105 + 6.25, 1e-12));
  // One rank a host: trees of gathers where messages are short.
  CHECK(ToMicroseconds(GatherOverHostsTime(1, 8, MB(0.8), none, across)) ==
        Near(60.0 + 700.0 / 30.0, 1e-12));
  CHECK(GatherOverHostsTime(1, 8, GB(8.0), none, across) ==
        0.5 * RingOverHostsTime(1, 8, GB(8.0), none, across));
}

TEST_CASE("more bytes take longer, a faster link never does") {
  Seconds<> last;
  for (const double mb : {1.0, 10.0, 100.0}) {
    const Seconds<> t = RingAllReduceTime<double>(
        8, MB(mb), Microseconds(5.0), GBPerSecond(10.0));
    CHECK(t > last);
    CHECK(RingAllReduceTime<double>(
              8, MB(mb), Microseconds(5.0), GBPerSecond(20.0)) < t);
    last = t;
  }
}

TEST_CASE("a message goes round a ring, by hand") {
  const RingLevel<double> inside{Microseconds(3.0), GBPerSecond(300.0)};
  const RingLevel<double> across{Microseconds(14.0), GBPerSecond(25.0)};
  const auto round = [&](int64_t local, int64_t hosts) {
    return RoundTime(local, hosts, MB(30.0), inside, across).base();
  };
  CHECK(round(1, 1) == 0.0);
  // 3 (3 us + 100 us).
  CHECK(round(4, 1) == Near(309e-6, 1e-5));
  // 3 (14 us + 30 MB / 25 GB/s), and over the network that two ranks have.
  CHECK(round(1, 4) == Near(3642e-6, 1e-5));
  CHECK(round(2, 2) == Near(1842e-6, 1e-5));
}

TEST_CASE("each of all sends to each, by hand") {
  const RingLevel<double> inside{Microseconds(3.0), GBPerSecond(300.0)};
  const RingLevel<double> across{Microseconds(14.0), GBPerSecond(25.0)};
  const auto time = [&](int64_t local, int64_t hosts) {
    return AllToAllTime(local, hosts, MB(24.0), inside, across).base();
  };
  CHECK(time(1, 1) == 0.0);
  // 7 (3 us + 3 MB / 300 GB/s).
  CHECK(time(8, 1) == Near(91e-6, 1e-5));
  // Four of eight are elsewhere: 4 (14 us + 3 MB / 25 GB/s).
  CHECK(time(4, 2) == Near(536e-6, 1e-5));
  CHECK(time(1, 2) == Near(494e-6, 1e-5));
  // Over a network faster than the links in a host these are waited for.
  CHECK(AllToAllTime(4, 2, MB(24.0), across, inside).base() ==
        Near(402e-6, 1e-5));
}

TEST_CASE("rows that go once to each host and there to ranks, by hand") {
  const RingLevel<double> inside{Microseconds(3.0), GBPerSecond(300.0)};
  const RingLevel<double> across{Microseconds(14.0), GBPerSecond(25.0)};
  const auto time = [&](int64_t local, int64_t hosts) {
    return RowsByHostTime(local, hosts, MB(24.0), 4.0, 2.5, inside, across)
        .base();
  };
  // Each row meets 4 of 8 ranks: 7 x 3 us + 4 x 7/8 x 24 MB / 300 GB/s.
  CHECK(time(8, 1) == Near(301e-6, 1e-5));
  // And 2.5 of 4 hosts: 3 x 14 us + 2.5 x 3/4 x 24 MB / 25 GB/s.
  CHECK(time(2, 4) == Near(1842e-6, 1e-5));
  // Over a wide network what is spread in a host is waited for.
  CHECK(RowsByHostTime(8, 2, MB(24.0), 4.0, 1.5, across, inside).base() ==
        Near(7 * 14e-6 + 3360e-6, 1e-5));
  CHECK(time(1, 1) == 0.0);
}

}  // namespace trainfare::model
