#include "model/internal/text.h"
