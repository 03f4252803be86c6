#include "model/kernel_name.h"

#include <doctest/doctest.h>

#include "model/kernels.h"
#include "model/presets.h"

namespace trainfare::model {
namespace {

TEST_CASE("a kernel's name is of the table") {
  const KernelName norm = "layer norm";
  CHECK(norm.text() == "layer norm");
  CHECK(norm == KernelName::Find("layer norm"));
  CHECK_FALSE(norm == KernelName("softmax"));
  CHECK_FALSE(KernelName::Find("layer nrom"));
  CHECK(KernelName().text().empty());
  // A literal that is not does not compile: KernelName("layer nrom").
}

TEST_CASE("every kernel of a step has a name") {
  Workload w;
  w.batch = 2;
  w.sequence_length = 16;
  for (const Architecture& a : ArchitecturePresets()) {
    w.architecture = a;
    for (const Kernel& kernel : ExpandKernels(w).kernels) {
      CHECK_FALSE(kernel.name.text().empty());
    }
  }
}

}  // namespace
}  // namespace trainfare::model
