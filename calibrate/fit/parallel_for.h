#pragma once

#include <cstddef>
#include <functional>

namespace trainfare::hardware {
class ProgressLine;
}  // namespace trainfare::hardware

namespace trainfare::calibrate {

// work(0) to work(count - 1), on as many threads as there are processors; each
// writes to what is its own alone. The first exception is thrown again once all
// threads have ended. Within such work it is one after another. `progress`, where there is one, gets one more for each.
void ParallelFor(size_t count,
                 const std::function<void(size_t)>& work,
                 hardware::ProgressLine* progress = nullptr);

}  // namespace trainfare::calibrate
