#include "trainer/device/launch_counter.h"

#include <ATen/record_function.h>

#include <memory>
#include <vector>

namespace trainfare::trainer {
namespace {

struct Calls {
  std::vector<bool> counts;  // of the operators that are running
  int64_t leaves = 0;
};

Calls& CallsOfThread() {
  static thread_local Calls calls;
  return calls;
}

bool ReadsTensor(const at::RecordFunction& function) {
  for (const c10::IValue& input : function.inputs()) {
    if (input.isTensor()) {
      if (input.toTensor().defined() && input.toTensor().dim() > 0) return true;
    } else if (input.isTensorList()) {
      for (const at::Tensor& tensor : input.toTensorVector()) {
        if (tensor.dim() > 0) return true;
      }
    }
  }
  return false;
}

std::unique_ptr<at::ObserverContext> OnStart(const at::RecordFunction& call) {
  Calls& calls = CallsOfThread();
  const bool reads = ReadsTensor(call);
  if (reads && !calls.counts.empty()) calls.counts.back() = false;
  calls.counts.push_back(reads);
  return nullptr;
}

void OnEnd(const at::RecordFunction&, at::ObserverContext*) {
  Calls& calls = CallsOfThread();
  if (calls.counts.empty()) return;  // began before the counter
  if (calls.counts.back()) ++calls.leaves;
  calls.counts.pop_back();
}

}  // namespace

LaunchCounter::LaunchCounter()
    : callback_(at::addThreadLocalCallback(
          at::RecordFunctionCallback(&OnStart, &OnEnd)
              .needsInputs(true)
              .scopes({at::RecordScope::FUNCTION}))) {
  CallsOfThread() = {};
}

LaunchCounter::~LaunchCounter() { at::removeCallback(callback_); }

int64_t LaunchCounter::count() const { return CallsOfThread().leaves; }

}  // namespace trainfare::trainer
