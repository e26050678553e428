"""halting - stops a process for a test. Its signal takes a while: until then threads of the process
that run on another processor go on, and answer what they are asked."""
import os
import signal
import time


def halt(pid):
    """Returns when all threads of the process stand still. SIGCONT continues them."""
    os.kill(pid, signal.SIGSTOP)
    while not all(stands_still(f"/proc/{pid}/task/{task}/stat") for task in os.listdir(f"/proc/{pid}/task")):
        time.sleep(0.001)


def stands_still(stat):
    with open(stat) as f:
        return f.read().rpartition(")")[2].split()[0] == "T"
