#pragma once

#include <cstddef>
#include <functional>

namespace trainfare::calibrate {

// work(0) to work(count - 1), on as many threads as there are processors; each
// writes to what is its own alone. The first exception is thrown again once all
// threads have ended.
void ParallelFor(size_t count, const std::function<void(size_t)>& work);

}  // namespace trainfare::calibrate
