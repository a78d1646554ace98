// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/live_options.h"

namespace hw::app {

void addLimits(CLI::App& command, live::LimitWords& words) {
    command.add_option("--budget", words.budget,
                       "Keep live bytes within this (\"20GB\"), without a session or a plan: DTR "
                       "evicts and makes again while the program trains");
    command.add_flag("--on-oom", words.onOom,
                     "Drop nothing until an allocation fails; then evict as DTR does, and try it "
                     "again before the program hears of it");
    command.add_flag(
        "--partition", words.partition,
        "With --budget: a planner also chooses what compiled code (torch.compile) saves "
        "for the backward pass. This costs less time than running kernels again, but "
        "the compiler then fuses other ops, and results may round differently");
    command.add_option("--verify", words.verify,
                       "How much of what is recomputed is compared with what was dropped: full, "
                       "sampled or off (default: as much as takes 1 % of a step). A difference "
                       "ends the program");
    command.add_option("--planner", words.planner,
                       "With --budget: whose plan takes over from DTR once it is there (default: "
                       "highwater), or which of DTR's heuristics is to stay (\"dtr:lru\")");
}

}  // namespace hw::app
