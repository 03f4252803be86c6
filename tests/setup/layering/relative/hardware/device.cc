#include "../trainer/session.h"
