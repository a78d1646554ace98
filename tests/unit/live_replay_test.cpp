// SPDX-License-Identifier: MIT
#include "planners/dtr/live_replay.h"

#include <gtest/gtest.h>

#include <sstream>

namespace hw::planners {
namespace {

// 0: a parameter. 1 is made from it and gone for good; 2 and 4 are made from 1, 3 from 2. So 2 and
// 4 can no longer be made, and stay. An allocation chooses 3, which waits, as autograd counts who
// refers to 2. Of what is left, 5 is large enough, and cheaper than 6.
constexpr char kSharedOnceTheRestStays[] = R"(dtr 2
stretch 1 0
constant 0 100
op make 0 1 0
end 1000 1 0 3 1 1 100 0
keep 1
done
op a 0 1 1
end 5000 1 1 3 2 1 100 0
done
op b 0 1 2
end 1 1 2 3 3 1 400000 0
done
op c 0 1 1
end 1000000000 1 1 3 4 1 10000000 0
done
unwanted 1
lost 1
freed 1
op d 0 1 0
end 1 1 0 3 5 1 400 0
done
op e 0 1 0
end 1000 1 0 3 6 1 60000 0
done
op f 0 1 0
end 1000 1 0 3 7 1 50 0
done
room 8
shared 3
evict 5
end
)";

TEST(LiveReplay, WhatIsGoneIsSettledBeforeAnybodyAsksWhoRefersToTheRest) {
    std::istringstream file(kSharedOnceTheRestStays);
    const auto log = readLiveLog(file);
    ASSERT_TRUE(log) << log.error().what;
    ASSERT_EQ(log->stretches.size(), 1U);
    const Replayed replayed = replay(log->stretches.front(), log->heuristic);
    EXPECT_EQ(replayed.stopped, "");
    EXPECT_EQ(replayed.evicted, log->stretches.front().evicted);
}

}  // namespace
}  // namespace hw::planners
