#include "hardware/catalog/gpu_generation.h"

#include "hardware/catalog/gpu_generation_fields.h"
#include "hardware/files/yaml_fields.h"
#include "hardware/files/yaml_reader.h"

namespace trainfare::hardware {

GpuGeneration ReadGpuGeneration(const Reader& map) {
  GpuGeneration generation;
  YamlFieldReader fields(map);
  VisitFields(fields, generation);
  return generation;
}

}  // namespace trainfare::hardware
