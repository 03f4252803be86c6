#include <vector>  // a bracket [ must not hide the next line; nor this

#include "trainer/session.h"
