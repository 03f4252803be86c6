#include "hardware/catalog/arithmetic_energy.h"

#include "hardware/catalog/arithmetic_energy_fields.h"
#include "hardware/files/yaml_fields.h"
#include "hardware/files/yaml_reader.h"

namespace trainfare::hardware {

ArithmeticEnergy ReadArithmeticEnergy(const Reader& map) {
  ArithmeticEnergy energy;
  YamlFieldReader fields(map);
  VisitFields(fields, energy);
  return energy;
}

}  // namespace trainfare::hardware
