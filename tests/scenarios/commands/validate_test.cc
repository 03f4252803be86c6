#include "scenarios/commands/validate.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "calibrate/fit/device_fit.h"
#include "calibrate/fit/fit_file.h"
#include "calibrate/records/import/observations.h"
#include "hardware/catalog/device.h"
#include "model/error.h"
#include "scenarios/report/json.h"
#include "scenarios/report/limits.h"
#include "scenarios/validation/error_summary.h"
#include "tests/near.h"
#include "tests/scenarios/hermetic.h"

namespace trainfare::scenarios {
namespace {

constexpr std::string_view kHeader =
    "source,source_file,system_name,device,n_devices,nodes,model,hidden,layers,"
    "heads,intermediate,vocab,seq_len,batch_per_device,grad_accum,precision,"
    "framework,stack_notes,task,metric,value,notes\n";

// A row of a table: one fine-tuning step of BERT-base.
std::string Row(std::string_view device,
                int batch,
                int length,
                std::string_view precision,
                double step_ms) {
  return "test,file,system," + std::string(device) +
         ",1,1,bert-base,768,12,12,"
         "3072,30522," +
         std::to_string(length) + "," + std::to_string(batch) + ",1," +
         std::string(precision) + ",PyTorch,,finetune,step_ms," +
         std::to_string(step_ms) + ",\n";
}

// Steps that take `slowdown` times what is predicted from the datasheets of
// two devices of which no fit ships.
std::string SlowedTable(double slowdown) {
  const auto table = [](const auto& step_ms_of) {
    std::string text(kHeader);
    size_t row = 0;
    for (const char* device : {"a10", "l40s"}) {
      for (const int batch : {2, 8, 16}) {
        for (const int length : {64, 128}) {
          text += Row(device, batch, length, "fp16", step_ms_of(row++));
        }
      }
    }
    return text;
  };
  const TemporaryFolder folder;
  ValidateOptions options;
  options.files = {folder.Write("any.csv", table([](size_t) { return 1e6; }))};
  const Json rows = Json::parse(Validate(options).json).at("rows");
  return table([&](size_t row) {
    return 1e3 * slowdown * rows.at(row).at("predicted_s").get<double>();
  });
}

Json Result(const std::string& file,
            std::string_view protocol,
            int expected_exit = kOk) {
  ValidateOptions options;
  options.files = {file};
  SetProtocol(protocol, options);
  const Report report = Validate(options);
  CHECK(report.exit_code == expected_exit);
  return Json::parse(report.json);
}

}  // namespace

TEST_CASE("errors are summed up by hand") {
  const ErrorSummary s =
      Summarise({{10.0, true}, {-20.0, true}, {30.0, false}, {0.0, true}});
  CHECK(s.count == 4);
  CHECK(s.mape == Near(15.0, 1e-12));
  CHECK(s.median == Near(15.0, 1e-12));
  CHECK(s.max == Near(30.0, 1e-12));
  CHECK(s.bias == Near(5.0, 1e-12));
  CHECK(s.coverage == Near(75.0, 1e-12));
  // Type 7: 0.9 of the way through 4 values is 2.7: 20 + 0.7 (30 - 20).
  CHECK(s.p90 == Near(27.0, 1e-12));
  CHECK(Summarise({}).count == 0);
  // An interval of 95 % is another; a row may have none.
  CHECK(s.with_interval_95 == 0);
  const ErrorSummary both =
      Summarise({{10.0, true, true}, {-20.0, false, true}, {30.0, false}});
  CHECK(both.coverage == Near(100.0 / 3.0, 1e-12));
  CHECK(both.with_interval_95 == 2);
  CHECK(both.coverage_95 == Near(100.0, 1e-12));
}

TEST_CASE("fitting to the rows takes a common slowdown away") {
  const FitFolder none;
  const TemporaryFolder folder;
  const std::string file = folder.Write("slow.csv", SlowedTable(1.3));
  const Json shipped = Result(file, "as-shipped");
  CHECK(shipped.at("overall").at("n") == 12);
  CHECK(shipped.at("fitted").empty());
  const double before = shipped.at("overall").at("median");
  CHECK(before > 10.0);
  for (const char* protocol : {"in-sample", "leave-one-out", "k-runs=4"}) {
    CAPTURE(protocol);
    const Json fitted = Result(file, protocol);
    CHECK(fitted.at("overall").at("median").get<double>() < before / 2.0);
  }
}

// 273 workloads of a device: more than get a fit of their own.
TEST_CASE("of many workloads each is left out by what it weighs") {
  const FitFolder none;
  const TemporaryFolder folder;
  std::string text(kHeader);
  for (int batch = 1; batch <= 17; ++batch) {
    for (int length = 16; length <= 256; length += 16) {
      const double step_ms = 12.0 + 0.012 * batch * length;
      text += Row("a10", batch, length, "fp16", step_ms);
    }
  }
  // One that is off by a factor of 3 is told by the others, not by itself.
  text += Row("a10", 18, 100, "fp16", 3.0 * (12.0 + 0.012 * 1800));
  const std::string file = folder.Write("many.csv", text);
  const Json left_out = Result(file, "leave-one-out");
  const Json in_sample = Result(file, "in-sample");
  CHECK(left_out.at("overall").at("n") == 273);
  CHECK(left_out.at("skipped").empty());
  const double median = left_out.at("overall").at("median");
  CHECK(median < 5.0);
  CHECK(median ==
        Near(in_sample.at("overall").at("median").get<double>(), 0.5));
  CHECK(left_out.at("overall").at("max").get<double>() > 50.0);
  for (const Json& row : left_out.at("rows")) {
    CHECK(row.at("grade") != "measured");
  }
}

TEST_CASE("rows that were fitted are named and not counted, but in-sample") {
  const FitFolder none;
  const TemporaryFolder folder;
  const std::string file = folder.Write("slow.csv", SlowedTable(1.1));
  const Json one = Result(file, "one-run-per-device");
  CHECK(one.at("fitted").size() == 2);
  CHECK(one.at("overall").at("n") == 10);
  for (const Json& row : one.at("rows")) {
    for (const Json& label : one.at("fitted")) CHECK(row.at("label") != label);
  }
  const Json three = Result(file, "k-runs=3");
  CHECK(three.at("fitted").size() == 6);
  CHECK(three.at("overall").at("n") == 6);
  const Json in_sample = Result(file, "in-sample");
  CHECK(in_sample.at("fitted").size() == 12);
  CHECK(in_sample.at("overall").at("n") == 12);
  // All are asked for: nothing is left to predict.
  const Json all = Result(file, "k-runs=6", kInput);
  CHECK(all.at("overall").at("n") == 0);
  CHECK(all.at("overall").at("mape").is_null());
}

// All rows are 1.3 times as slow as the formula; a row that was added says so
// of those like it.
TEST_CASE("runs that are added move what is like them") {
  const FitFolder none;
  const TemporaryFolder folder;
  const std::string file = folder.Write("slow.csv", SlowedTable(1.3));
  const double before =
      Result(file, "as-shipped").at("overall").at("median").get<double>();
  const Json one = Result(file, "added-runs=1");
  CHECK(one.at("protocol") == "added-runs=1");
  CHECK(one.at("fitted").size() == 2);
  CHECK(one.at("overall").at("n") == 10);
  CHECK(one.at("overall").at("median").get<double>() < before);
  const Json three = Result(file, "added-runs=3");
  CHECK(three.at("fitted").size() == 6);
  CHECK(three.at("overall").at("median").get<double>() <
        one.at("overall").at("median").get<double>());
}

TEST_CASE("the draw follows the seed and nothing else") {
  const FitFolder none;
  const TemporaryFolder folder;
  const std::string file = folder.Write("slow.csv", SlowedTable(1.1));
  ValidateOptions options;
  options.files = {file};
  SetProtocol("one-run-per-device", options);
  const std::string first = Validate(options).json;
  CHECK(Validate(options).json == first);
  bool changed = false;
  for (options.seed = 2; options.seed < 8; ++options.seed) {
    changed = changed || Json::parse(Validate(options).json).at("fitted") !=
                             Json::parse(first).at("fitted");
  }
  CHECK(changed);
  // What the flag makes of -1.
  options.seed = static_cast<uint64_t>(-1);
  CHECK_THROWS_WITH_AS(
      Validate(options),
      "--seed: expected a whole number from 0 to 1000000, got -1",
      model::InputError);
}

TEST_CASE("a device is predicted from the others of its kind") {
  const FitFolder none;
  const TemporaryFolder folder;
  const std::string file = folder.Write("slow.csv", SlowedTable(1.2));
  const Json json = Result(file, "leave-device-out");
  CHECK(json.at("overall").at("n") == 12);
  for (const Json& row : json.at("rows")) {
    CHECK(row.at("grade") == "datasheet only");
    CHECK_FALSE(row.at("fitted").get<bool>());
  }
}

TEST_CASE("what one source measured is predicted from the others'") {
  const FitFolder none;
  const TemporaryFolder folder;
  std::string table = SlowedTable(1.2);
  // Half of the A10's rows, by somebody else; revisions are of the same.
  const std::string_view row = "test,file,system,a10,";
  for (int i = 0; i < 3; ++i) {
    table.replace(table.find(row), 4, "own/er@" + std::to_string(i));
  }
  const Json json = Result(folder.Write("two.csv", table), "leave-source-out");
  CHECK(json.at("overall").at("n") == 6);
  CHECK(json.at("fitted").empty());
  for (const Json& one : json.at("rows")) {
    CHECK(one.at("device") == "a10");
    CHECK_FALSE(one.at("source_seen").get<bool>());
    CHECK(one.at("source_log_sigma").get<double>() > 0);
    CHECK(one.at("log_sigma") > one.at("source_log_sigma"));
  }
  CHECK(json.at("rows")[0].at("measured_by") == "own/er");
  REQUIRE(json.at("skipped").size() == 6);
  CHECK(json.at("skipped")[0].at("reason") ==
        "nobody else measured such devices");
  const Json left_out = Result(folder.Write("one.csv", table), "leave-one-out");
  for (const Json& one : left_out.at("rows")) {
    CHECK(one.at("source_seen").get<bool>());
    CHECK(one.at("source_log_sigma") == 0);
  }
}

TEST_CASE("one source of each device leaves none to leave out, and says so") {
  const FitFolder none;
  const TemporaryFolder folder;
  const std::string said =
      "each device has one source only in these files, so that none can be "
      "left out; leave-one-out and leave-device-out need no second one";
  const auto report_of = [&](const std::string& table) {
    ValidateOptions options;
    options.files = {folder.Write("any.csv", table)};
    SetProtocol("leave-source-out", options);
    return Validate(options);
  };
  const auto notes_it = [&](const Report& report) {
    return std::find(report.notes.begin(),
                     report.notes.end(),
                     Note(said, Caution::kRowsSkipped)) != report.notes.end();
  };
  std::string table = SlowedTable(1.0);
  const Report report = report_of(table);
  CHECK(report.exit_code == kInput);
  CHECK(report.complaint == "no row could be predicted: " + said);
  CHECK(notes_it(report));
  const Json json = Json::parse(report.json);
  CHECK(json.at("overall").at("n") == 0);
  CHECK(json.at("warnings").back().at("message") == said);
  table.replace(table.find("test,file,system,a10,"), 4, "more");
  const Report two = report_of(table);
  CHECK(two.exit_code == kOk);
  CHECK_FALSE(notes_it(two));
}

TEST_CASE("runs over a number of hosts are predicted by those over others") {
  const FitFolder none;
  const TemporaryFolder folder;
  std::string table =
      "device,n_devices,nodes,model,seq_len,batch_per_device,precision,"
      "framework,stack_notes,task,metric,value\n";
  const auto add = [&](const std::string& devices, int batch, int step_ms) {
    table += fmt::format(
        "{},bert-large,128,{},fp32,PyTorch,100 Gbit/s between nodes,finetune,"
        "step_ms,{}\n",
        devices,
        batch,
        step_ms);
  };
  for (const int batch : {8, 16}) {
    add("V100-SXM2-32GB,8,1", batch, 40 * batch);
    add("V100-SXM2-32GB,16,2", batch, 44 * batch);
    add("T4,1,1", batch, 80 * batch);
  }
  const Json json = Result(folder.Write("hosts.csv", table), "leave-hosts-out");
  CHECK(json.at("protocol") == "leave-hosts-out");
  CHECK(json.at("overall").at("n") == 4);
  for (const Json& row : json.at("rows")) {
    CHECK(row.at("device") == "v100_sxm2_32gb");
  }
  REQUIRE(json.at("skipped").size() == 2);
  CHECK(json.at("skipped")[0].at("reason") ==
        "such devices were measured on this number of hosts alone");
}

TEST_CASE("a model of another size is predicted without and with rows of it") {
  const FitFolder none;
  const TemporaryFolder folder;
  std::string table(kHeader);
  for (const int batch : {1, 2, 4, 8, 16, 32}) {
    table += Row("t4", batch, 128, "fp32", 40 + 25 * batch);
    table += fmt::format(
        "test,file,system,t4,1,1,bert-large,1024,24,16,4096,30522,128,{},1,"
        "fp32,PyTorch,,finetune,step_ms,{},\n",
        batch,
        120 + 75 * batch);
    // Of one size alone.
    table += Row("v100_pcie_16gb", batch, 128, "fp32", 10 + 5 * batch);
  }
  const std::string file = folder.Write("sizes.csv", table);
  const Json without = Result(file, "leave-model-out");
  CHECK(without.at("protocol") == "leave-model-out");
  CHECK(without.at("overall").at("n") == 12);
  CHECK(without.at("fitted").empty());
  REQUIRE(without.at("skipped").size() == 6);
  CHECK(without.at("skipped")[0].at("reason") ==
        "no model of another size was measured on such devices");

  const Json with = Result(file, "model-runs=2");
  CHECK(with.at("protocol") == "model-runs=2");
  CHECK(with.at("overall").at("n") == 8);
  CHECK(with.at("fitted").size() == 4);
  CHECK(with.at("skipped").size() == 6);
  // What is linear in the batch is known better by rows of it.
  CHECK(with.at("overall").at("mape") < without.at("overall").at("mape"));
}

TEST_CASE("rows of a table that are not read are listed by their lines") {
  const FitFolder none;
  const TemporaryFolder folder;
  const std::string whole = "test,file,system,t4,1,1,bert-base,768,12,12,3072,";
  const std::string file = folder.Write(
      "odd.csv",
      std::string(kHeader) + whole +
          "30522,128,8,1,fp16,PyTorch,,finetune,mfu_pct,40,\n" +
          Row("t4", 8, 128, "fp16", 100) + Row("t4", 8, 128, "fp16", -1) +
          whole + "30522,128,8,1,fp16,PyTorch,,finetune,step_ms,9,fwd+bwd\n" +
          Row("t4", 8, 128, "bf16", 10));
  ValidateOptions options;
  options.files = {file};
  const Report report = Validate(options);
  const Json json = Json::parse(report.json);
  CHECK(json.at("overall").at("n") == 1);
  CHECK(json.at("skipped").size() == 1);
  REQUIRE(json.at("unused").size() == 3);
  const auto has = [&](size_t at, int line, std::string_view words) {
    const Json& row = json.at("unused").at(at);
    CHECK(row.at("label") == fmt::format("{}:{}", file, line));
    const std::string reason = row.at("reason");
    CAPTURE(reason);
    CHECK(reason.find(words) != std::string::npos);
  };
  has(0, 2, "metric mfu_pct: a rate in FLOPs");
  has(1, 4, "value: expected a number above 0");
  has(2, 5, "with the update or without is not stated");
  // People see the rows that are predicted; CSV has the others, too.
  const std::string csv = CsvTable(report.tables.front());
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 6);
  CHECK(csv.find(file + ":2,,") != std::string::npos);
  CHECK(TextTable(report.tables.front()).find(":2 ") == std::string::npos);
  std::string said;
  for (const Note& note : report.notes) said += note.text + "\n";
  CHECK(said.find("3 of 5 rows are not used") != std::string::npos);
}

TEST_CASE("what is wrong with rows is said once, with all of their lines") {
  const FitFolder none;
  const TemporaryFolder folder;
  std::string text(kHeader);
  text += Row("t4", 8, 128, "fp16", -1);
  for (int i = 0; i < 7; ++i) text += Row("t4", 8, 128, "fp16", 100 + i);
  text += Row("t4", 8, 128, "fp16", -2) + Row("t4", 8, 128, "fp16", -1);
  ValidateOptions options;
  options.files = {folder.Write("odd.csv", text)};
  const Report report = Validate(options);
  std::string said;
  for (const Note& note : report.notes) said += note.text + "\n";
  CAPTURE(said);
  CHECK(said.find("3 of 10 rows are not used: 2 value: expected a number above "
                  "0, got \"-1.000000\" (lines 2, 11), 1 value: expected a "
                  "number above 0, got \"-2.000000\" (line 10)\n") !=
        std::string::npos);
  // Each repetition has its own line.
  const Json json = Json::parse(report.json);
  REQUIRE(json.at("rows").size() == 7);
  CHECK(json.at("rows").at(6).at("label") == options.files[0] + ":9");
}

TEST_CASE("what cannot be predicted is listed with its reason") {
  const FitFolder none;
  const TemporaryFolder folder;
  const std::string file = folder.Write(
      "odd.csv",
      std::string(kHeader) + Row("GeForce Imaginary 9", 8, 128, "fp16", 10) +
          Row("t4", 8, 128, "bf16", 10) + Row("t4", 8, 128, "fp16", 100));
  const Json json = Result(file, "as-shipped");
  CHECK(json.at("overall").at("n") == 1);
  REQUIRE(json.at("skipped").size() == 2);
  CHECK(json.at("skipped")[0].at("reason") ==
        "unknown device \"GeForce Imaginary 9\"");
  CHECK(json.at("skipped")[1].at("reason").get<std::string>().find("bf16") !=
        std::string::npos);
}

// A board draws between its rest and its limit whatever it does; the answer is
// made right by hand, and then wrong by a tenth.
TEST_CASE("every row of a run's parts is accounted for") {
  const TemporaryFolder folder;
  std::string text(kHeader);
  for (const char* part : {"70,forward only",
                           "130,backward only",
                           "200,fwd+bwd without the optimizer"}) {
    text += fmt::format(
        "test,file,system,a10,1,1,bert-base,768,12,12,3072,30522,128,8,1,fp16,"
        "PyTorch,,finetune,step_ms,{}\n",
        part);
  }
  const Json json = Result(folder.Write("t.csv", text), "as-shipped");
  CHECK(json.at("rows").size() == 1);
  REQUIRE(json.at("skipped").size() == 2);
  CHECK(json.at("skipped")[0].at("reason") ==
        "a part of a step whose whole is here: fits take it");
}

TEST_CASE("power and energy stand beside the time of their run") {
  const TemporaryFolder folder;
  const auto row = [](int batch, const std::string& figure, double watts) {
    return fmt::format(
        "test,file,system,V100-PCIE-16GB,1,1,bert-base,768,12,12,3072,30522,"
        "384,{},1,fp32,PyTorch,,finetune,{},{}\n",
        batch,
        figure,
        watts);
  };
  const std::string header =
      "source,source_file,system_name,device,n_devices,nodes,model,hidden,"
      "layers,heads,intermediate,vocab,seq_len,batch_per_device,grad_accum,"
      "precision,framework,stack_notes,task,metric,value,power_limit_w\n";
  const auto result = [&](double factor) {
    std::string text = header;
    for (const int batch : {8, 32}) {
      text += row(batch, "step_ms,800", 150);
      text += row(batch, fmt::format("avg_power_w,{}", 150 * factor), 150);
    }
    return Result(folder.Write("power.csv", text), "as-shipped");
  };
  const Json right = result(1.0).at("power");
  REQUIRE(right.at("rows").size() == 2);
  const Json& first = right.at("rows").at(0);
  const double predicted = first.at("predicted_w").get<double>();
  CHECK(predicted > 100);
  CHECK(predicted <= 150);
  CHECK(first.at("power_limit_w") == 150);
  CHECK(first.at("measured_j").get<double>() == Near(150 * 0.8, 1e-5));
  // Energy errs by the product of both factors.
  const double time = 1 + first.at("time_error_percent").get<double>() / 100;
  const double power = 1 + first.at("power_error_percent").get<double>() / 100;
  CHECK(1 + first.at("energy_error_percent").get<double>() / 100 ==
        Near(time * power, 1e-5));
  const Json wrong = result(1.1).at("power").at("rows").at(0);
  CHECK(wrong.at("predicted_w").get<double>() == predicted);
  CHECK(1 + wrong.at("power_error_percent").get<double>() / 100 ==
        Near(power / 1.1, 1e-5));
  // A fit to a run that draws more expects more of the others.
  const auto drawn = [&](double factor) {
    std::string text = header;
    for (const int batch : {4, 8, 12, 16}) {
      text += row(batch, "step_ms,400", 250);
      text += row(batch, fmt::format("avg_power_w,{}", 200 * factor), 250);
    }
    return Result(folder.Write("fit.csv", text), "leave-one-out")
        .at("power")
        .at("rows")
        .at(0)
        .at("predicted_w")
        .get<double>();
  };
  CHECK(drawn(1.1) > 1.05 * drawn(1.0));
}

TEST_CASE("groups hold every row once") {
  const FitFolder none;
  const TemporaryFolder folder;
  const std::string file = folder.Write("slow.csv", SlowedTable(1.1));
  for (const char* by :
       {"device", "precision", "model", "framework", "source"}) {
    CAPTURE(by);
    ValidateOptions options;
    options.files = {file};
    options.group_by = GroupByFromText(by);
    const Json json = Json::parse(Validate(options).json);
    int64_t rows = 0;
    for (const Json& group : json.at("groups")) {
      rows += group.at("n").get<int64_t>();
      CHECK(group.at("max") >= group.at("p90"));
      CHECK(group.at("p90") >= group.at("median"));
    }
    CHECK(rows == json.at("overall").at("n"));
  }
}

TEST_CASE("rows that a fit at hand was made from are named") {
  const FitFolder fits;
  const TemporaryFolder folder;
  const std::string file = folder.Write("slow.csv", SlowedTable(1.3));
  CHECK(Result(file, "as-shipped").at("fitted").empty());
  const auto observations = calibrate::ReadObservations({file}).observations;
  const hardware::Device& device =
      hardware::DeviceCatalog::Shipped().Find("a10");
  std::filesystem::create_directories(fits.Path("fits"));
  calibrate::SaveFit(calibrate::FitDevice(device, observations),
                     fits.Path("fits/a10.yaml"));
  const Json json = Result(file, "as-shipped");
  CHECK(json.at("fitted").size() == 6);
  CHECK(json.at("overall").at("n") == 12);
  for (const Json& row : json.at("rows")) {
    CHECK(row.at("fitted") == (row.at("device") == "a10"));
  }
}

TEST_CASE("a passed limit is exit code 4 and says by how much") {
  const FitFolder none;
  const TemporaryFolder folder;
  ValidateOptions options;
  options.files = {folder.Write("slow.csv", SlowedTable(1.3))};
  Report report = Validate(options);
  CheckLimits({LimitFromText("mape>5%"), LimitFromText("max > 99")}, report);
  CHECK(report.exit_code == kLimitPassed);
  CHECK(report.complaint.starts_with("--fail-if: mape is "));
  CHECK(report.complaint.find("max") == std::string::npos);
  CHECK_FALSE(report.json.empty());
  report = Validate(options);
  CheckLimits({LimitFromText("coverage<0")}, report);
  CHECK(report.exit_code == kOk);
}

TEST_CASE("protocols and groupings are read strictly") {
  ValidateOptions options;
  CHECK_THROWS_AS(SetProtocol("k-runs=0", options), UsageError);
  CHECK_THROWS_AS(SetProtocol("k-runs=x", options), UsageError);
  CHECK_THROWS_AS(SetProtocol("added-runs=0", options), UsageError);
  CHECK_THROWS_AS(SetProtocol("in-sampl", options), UsageError);
  CHECK_THROWS_AS(GroupByFromText("colour"), UsageError);
}

TEST_CASE("repeats of a point are one row, with the noise beside it") {
  const TemporaryFolder folder;
  std::string text(kHeader);
  // 10, 11 and 14 ms: the median is 11; left out, the others' medians are
  // 12.5, 12 and 10.5.
  for (const double ms : {10.0, 14.0, 11.0}) {
    text += Row("a10", 8, 128, "fp16", ms);
  }
  text += Row("a10", 2, 64, "fp16", 5.0);
  ValidateOptions options;
  options.files = {folder.Write("repeats.csv", text)};
  CHECK(Json::parse(Validate(options).json).at("rows").size() == 4);
  options.repeats = RepeatRuleFromText("median");
  const Report report = Validate(options);
  const Json json = Json::parse(report.json);
  const Json& rows = json.at("rows");
  REQUIRE(rows.size() == 2);
  CHECK(rows.at(0).at("measured_s").get<double>() == Near(0.011, 1e-5));
  CHECK(rows.at(0).at("repeat_spread_percent").get<double>() ==
        Near(40.0, 1e-5));
  CHECK(!rows.at(1).contains("repeat_spread_percent"));
  const Json& repeats = json.at("repeats");
  CHECK(repeats.at("points") == 1);
  // |12.5 / 10 - 1|, |12 / 11 - 1|, |10.5 / 14 - 1|
  CHECK(repeats.at("median").get<double>() == Near(25.0, 1e-5));
  CHECK(repeats.at("max").get<double>() == Near(25.0, 1e-5));
  CHECK(std::any_of(
      report.notes.begin(), report.notes.end(), [](const Note& note) {
        return note.text.find("1 point measured 3 times") != std::string::npos;
      }));
  CHECK_THROWS_AS(RepeatRuleFromText("some"), UsageError);
}

}  // namespace trainfare::scenarios
