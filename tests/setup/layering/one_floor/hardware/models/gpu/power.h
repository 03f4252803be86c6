#pragma once
#include "hardware/catalog/device.h"
