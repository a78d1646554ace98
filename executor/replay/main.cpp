// SPDX-License-Identifier: MIT
#include "executor/replay/command.h"

int main(int argc, char** argv) {
    return hw::executor::runCommand(argc, argv);
}
