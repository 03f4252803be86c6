#pragma once
#include "hardware/files/text.h"
