#include "hardware/files/text.h"

#include "hardware/files/reader.h"
