#include "trainer/bench/programs/programs.h"
#include "trainer/network/dropout.h"
#include "trainer/network/gated_block.h"
#include "trainer/network/make_transformer.h"

namespace trainfare::trainer::programs {
namespace {

model::Activation PlainActivation(const Setting& s) {
  const model::Architecture& a = s.architecture();
  return ActivationOf(a, DefaultOptions(a));
}

}  // namespace

// Of a plain block; gated ones have Gate().
Program ActivationForward(const Setting& s) {
  return [input = s.Narrow({s.kernel().work_items}),
          activation = PlainActivation(s)](int64_t) {
    return GateOf(activation, input);
  };
}
Program ActivationGradient(const Setting& s) {
  const int64_t elements = s.kernel().work_items;
  const at::Tensor input = s.Narrow({elements});
  if (PlainActivation(s) != model::Activation::kGelu) {
    return Backward({input}, [&] { return GateOf(PlainActivation(s), input); });
  }
  return [input, gradient = s.Narrow({elements})](int64_t) {
    return at::gelu_backward(gradient, input);
  };
}

Program WrittenOutGelu(const Setting& s) {
  return [input = s.Narrow({s.kernel().work_items})](int64_t) {
    return GeluByOperations(input);
  };
}
Program WrittenOutGeluGradient(const Setting& s) {
  const at::Tensor input = s.Narrow({s.kernel().work_items});
  return Backward({input}, [&] { return GeluByOperations(input); });
}

Program DropoutForward(const Setting& s) {
  const model::Kernel& k = s.kernel();
  return
      [input = s.Random({k.work_items}, s.WidthOf(k.bytes_read, k.work_items)),
       probability = s.architecture().dropout](int64_t) {
        return Dropout(input, probability, /*training=*/true);
      };
}
Program DropoutGradient(const Setting& s) {
  const model::Kernel& k = s.kernel();
  const at::Tensor input =
      s.Random({k.work_items}, s.WidthOf(k.bytes_written, k.work_items));
  return Backward({input}, [&] {
    return Dropout(input, s.architecture().dropout, /*training=*/true);
  });
}

Program Gate(const Setting& s) {
  return [input = s.Wide({s.kernel().work_items}),
          activation = s.architecture().activation](int64_t) {
    return GateOf(activation, input);
  };
}
Program GateGradient(const Setting& s) {
  const at::Tensor input = s.Wide({s.kernel().work_items});
  return Backward({input},
                  [&] { return GateOf(s.architecture().activation, input); });
}
Program GateProduct(const Setting& s) {
  const int64_t elements = s.kernel().work_items;
  return [a = s.Wide({elements}), b = s.Wide({elements})](int64_t) {
    return a * b;
  };
}

// The sum of two tensors; they may be of two widths.
Program Add(const Setting& s) {
  const model::Kernel& k = s.kernel();
  const at::ScalarType wide = s.WidthOf(k.bytes_written, k.work_items);
  const at::ScalarType other =
      k.bytes_read < 8 * k.work_items ? s.narrow : at::kFloat;
  return [a = s.Random({k.work_items}, wide),
          b = s.Random({k.work_items}, other)](int64_t) { return a + b; };
}
// What an adapter makes, scaled, and what its matrix makes.
Program AdapterAdd(const Setting& s) {
  const int64_t elements = s.kernel().work_items;
  return [product = s.Narrow({elements}), more = s.Narrow({elements})](
             int64_t) { return product.add(more, kAdapterScale); };
}
Program Scale(const Setting& s) {
  return [input = s.Narrow({s.kernel().work_items})](int64_t) {
    return input * 0.125;
  };
}

// Between fp32 and the narrow type, whichever the kernel reads.
Program Cast(const Setting& s) {
  const model::Kernel& k = s.kernel();
  const at::ScalarType from = s.WidthOf(k.bytes_read, k.work_items);
  const at::ScalarType to = from == at::kFloat ? s.narrow : at::kFloat;
  return [inputs = Rotation([&] { return s.Random({k.work_items}, from); }),
          to](int64_t call) { return inputs[call].to(to); };
}

}  // namespace trainfare::trainer::programs
