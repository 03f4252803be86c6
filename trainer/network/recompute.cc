#include "trainer/network/recompute.h"

#include <optional>
#include <utility>

#include "model/error.h"
#include "trainer/network/autocast.h"
#include "trainer/network/dropout.h"

namespace trainfare::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What a second computation begins with.
struct Start : torch::CustomClassHolder {
  Start(ModelPart given, at::DeviceType device)
      : part(std::move(given)),
        dropout(DropoutState()),
        autocast(Autocast::TypeOn(device)) {}

  ModelPart part;
  DropoutSequence dropout;
  std::optional<at::ScalarType> autocast;
};

// The sequence of masks goes on from where it was.
class DropoutAgain {
 public:
  explicit DropoutAgain(const DropoutSequence& from) : later_(DropoutState()) {
    SeedDropout(from.seed, from.calls);
  }
  ~DropoutAgain() { SeedDropout(later_.seed, later_.calls); }
  DropoutAgain(const DropoutAgain&) = delete;
  DropoutAgain& operator=(const DropoutAgain&) = delete;

 private:
  DropoutSequence later_;
};

class Recompute : public torch::autograd::Function<Recompute> {
 public:
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& input,
                            const ModelPart& part) {
    context->save_for_backward({input});
    context->saved_data["start"] = c10::IValue::make_capsule(
        c10::make_intrusive<Start>(part, input.device().type()));
    return part(input);
  }

  static variable_list backward(AutogradContext* context,
                                const variable_list& gradients) {
    const auto capsule = context->saved_data["start"].toCapsule();
    const auto& start = static_cast<const Start&>(*capsule);
    const at::Tensor input =
        context->get_saved_variables()[0].detach().requires_grad_(true);
    at::Tensor output;
    {
      const at::AutoGradMode with_gradients(true);
      const Autocast autocast(input.device().type(), start.autocast);
      const DropoutAgain again(start.dropout);
      output = start.part(input);
    }
    torch::autograd::backward({output}, {gradients[0]});
    return {input.grad(), at::Tensor()};
  }
};

}  // namespace

at::Tensor Recomputed(const ModelPart& part, const at::Tensor& input) {
  ENSURE(input.requires_grad(), "what is computed again has a backward pass");
  return Recompute::apply(input, part);
}

}  // namespace trainfare::trainer
