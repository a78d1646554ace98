# SPDX-License-Identifier: MIT
"""An export of Nsight Systems with the table that says what memory the driver gave."""
import sqlite3

PROCESS = 4242 << 24  # the process id stands in bits 24 to 47
HOST, DEVICE = 2, 3
ALLOCATE, FREE = 1, 2


def write(path):
    database = sqlite3.connect(path)
    database.execute("PRAGMA page_size = 1024")
    database.execute("CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS(start INTEGER, globalPid INTEGER, deviceId INTEGER,"
                     " contextId INTEGER, address INTEGER, pc INTEGER, bytes INTEGER, memKind INTEGER,"
                     " memoryOperationType INTEGER, name TEXT)")
    live = []
    for number in range(120):
        time, kind = 1000 * number, HOST if number % 10 == 0 else DEVICE
        size = (2 << 20) * (1 + number % 7)
        if number % 3 == 2:
            address, size, kind = live.pop(len(live) // 2)
            row = (time, PROCESS, 0, 1, address, 0, 0, kind, FREE, None)
        else:
            address = (1 << 40) + (number << 26)
            live.append((address, size, kind))
            row = (time, PROCESS, 0, 1, address, 0, size, kind, ALLOCATE, None)
        database.execute("INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES(?,?,?,?,?,?,?,?,?,?)", row)
    database.commit()
    database.close()
