#!/usr/bin/env python3
"""A real Slurm of two nodes on this machine, for tests: everything it writes is under one folder.

usage: tests/slurm/cluster.py start FOLDER | stop FOLDER | down FOLDER NODE | up FOLDER NODE

  start   starts munged, slurmctld and the slurmds of n1 and n2, and prints what to export to talk to them
  down    takes a node away, as if its machine had died: its slurmd and all of its jobs are killed, then Slurm is told
  up      gives it back
  stop    ends all of it; FOLDER stays, with the logs

Takes Debian's slurmctld, slurmd, slurm-client and munge. Works as root or not, without systemd, in a container:
- Two nodes are two slurmds of one host (`slurmd -N`, which Debian builds in): same NodeHostname and NodeAddr, each
  its own port, spool folder, pid file and log (%n in slurm.conf).
- proctrack/linuxproc, task/none and jobacct_gather/linux need no cgroups, which containers seldom let one make. Memory
  is still a resource that is given out (CR_CPU_Memory), and a job that takes more than it asked for is killed
  (OverMemoryKill, which looks once a second).
- config_overrides lets the nodes have what slurm.conf says, whatever the machine has.
- munged has a key and a socket of its own (AuthInfo), so one that serves the machine is left alone. --force: it refuses
  sockets below folders that not everybody may enter, such as a test's temporary one.
- The daemons stay in the foreground (-D) as children that this script detaches, so that their ids are known. All that
  they start carries FURLONG_SLURM_CLUSTER in its environment, which is how stop() finds what is left, and what a
  node's slurmd starts FURLONG_SLURM_NODE.
"""
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time

PROGRAMS = ["munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "sinfo"]
NODES = ["n1", "n2"]
MARK = "FURLONG_SLURM_CLUSTER"
NODE_MARK = "FURLONG_SLURM_NODE"
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"  # where Debian puts daemons


def missing_programs():
    """Of those that a cluster takes, the ones that are not on this machine."""
    return [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]


def free_ports(count):
    """Ports that nobody listens on. Somebody may take one before a daemon does: start() then tries others."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def processes():
    """(id, parent's id, environment) of each process that may be looked at."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
            with open(f"/proc/{name}/environ", "rb") as file:
                environment = file.read().split(b"\0")
        except OSError:
            continue  # it ended meanwhile, or is somebody else's
        found.append((int(name), parent, environment))
    return found


def kill_hard(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Cluster:
    """The cluster in a folder. start() raises RuntimeError with the daemons' last words."""

    def __init__(self, folder, cpus=2, memory_mib=2048):
        self.folder = os.path.abspath(folder)
        self.cpus = cpus
        self.memory_mib = memory_mib
        self._children = []  # daemons that this process has started

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def environment(self):
        """What a process needs in its environment to talk to this cluster and to no other."""
        return {"SLURM_CONF": self.path("slurm.conf"), "PATH": PATH}

    def start(self, attempts=3):
        for attempt in range(attempts):
            try:
                self._start()
                return
            except RuntimeError:
                self.stop()
                if attempt + 1 == attempts:
                    raise

    def _start(self):
        for parts in [("log",), ("state",), ("run",)] + [("spool", node) for node in NODES]:
            os.makedirs(self.path(*parts), exist_ok=True)
        self._configure()
        key = self.path("munge.key")
        if not os.path.exists(key):
            with open(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400), "wb") as file:
                file.write(os.urandom(128))
        self._daemon("munged", ["munged", "--foreground", "--force", f"--socket={self.path('run', 'munge.socket')}",
                                f"--key-file={key}", f"--pid-file={self.path('run', 'munged.pid')}",
                                f"--seed-file={self.path('state', 'munged.seed')}",
                                f"--log-file={self.path('log', 'munged.file.log')}"])
        self._wait("munged's socket", lambda: os.path.exists(self.path("run", "munge.socket")))
        self._daemon("slurmctld", ["slurmctld", "-D"])
        for node in NODES:
            self._slurmd(node)
        for node in NODES:
            self._wait(f"node {node} to be idle", lambda node=node: self.node_state(node) == "idle")

    def _configure(self):
        user = pwd.getpwuid(os.geteuid()).pw_name
        host = socket.gethostname().split(".")[0]
        ports = free_ports(1 + len(NODES))
        nodes = "".join(
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={self.cpus} Sockets=1"
            f" CoresPerSocket={self.cpus} ThreadsPerCore=1 RealMemory={self.memory_mib}\n"
            for node, port in zip(NODES, ports[1:]))
        with open(self.path("slurm.conf"), "w", encoding="utf-8") as file:
            file.write(f"""ClusterName=furlong
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={self.path('run', 'munge.socket')}
SlurmctldPidFile={self.path('run', 'slurmctld.pid')}
SlurmdPidFile={self.path('run', 'slurmd-%n.pid')}
SlurmctldLogFile={self.path('log', 'slurmctld.log')}
SlurmdLogFile={self.path('log', 'slurmd-%n.log')}
StateSaveLocation={self.path('state')}
SlurmdSpoolDir={self.path('spool', '%n')}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=64
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=100000
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
ReturnToService=2
SlurmdTimeout=30
KillWait=2
MinJobAge=300
{nodes}PartitionName=all Nodes={','.join(NODES)} Default=YES MaxTime=INFINITE State=UP
""")

    def _daemon(self, name, argv, environment=None):
        with open(self.path("log", name + ".out"), "ab") as log:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                     cwd=self.folder, env={**os.environ, **self.environment(), MARK: self.folder, **(environment or {})})
        with open(self.path("run", name + ".id"), "w", encoding="utf-8") as file:
            file.write(str(child.pid))
        self._children.append(child)

    def _slurmd(self, node):
        self._daemon(f"slurmd-{node}", ["slurmd", "-D", "-N", node], {NODE_MARK: node})

    def _id(self, name):
        try:
            with open(self.path("run", name + ".id"), encoding="utf-8") as file:
                return int(file.read())
        except (OSError, ValueError):
            return None

    def _ours(self):
        """Ids of what the daemons are and have started, this process and those above it left out."""
        mark = f"{MARK}={self.folder}".encode()
        table = processes()
        parents = {pid: parent for pid, parent, _ in table}
        above, pid = set(), os.getpid()
        while pid and pid not in above:
            above.add(pid)
            pid = parents.get(pid)
        ours = {pid for pid, _, environment in table if mark in environment} - above
        return self._with_descendants(ours, parents) - above

    @staticmethod
    def _with_descendants(ids, parents):
        """A job's own processes have the environment of who submitted it, and only hang below a slurmstepd."""
        ids = set(ids)
        while True:
            more = {pid for pid, parent in parents.items() if parent in ids} - ids
            if not more:
                return ids
            ids |= more

    def _reap(self):
        """Daemons that are children of this process would stay as zombies."""
        self._children = [child for child in self._children if child.poll() is None]

    def _wait(self, what, ready, seconds=60, pause_s=0.1):
        limit = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > limit:
                raise RuntimeError(f"waited {seconds} s for {what} in vain\n{self.last_words()}")
            time.sleep(pause_s)

    def last_words(self, lines=6):
        words = []
        for name in sorted(os.listdir(self.path("log"))):
            if os.path.exists(self.path("log", name.replace(".out", ".log"))) and name.endswith(".out"):
                continue  # a daemon that runs in the foreground says everything twice
            with open(self.path("log", name), encoding="utf-8", errors="replace") as file:
                words += [f"{name}: {line.rstrip()}" for line in file.readlines()[-lines:]]
        return "\n".join(words)

    def command(self, *argv, timeout=60):
        """Runs one of Slurm's commands; its output."""
        done = subprocess.run(argv, env={**os.environ, **self.environment()}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=timeout)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(argv)}: {done.stdout}{done.stderr}")
        return done.stdout

    def node_state(self, node):
        """"idle", "mixed", "down" and the like; "unknown" while the controller does not answer."""
        try:
            return self.command("sinfo", "-h", "-n", node, "-o", "%T").strip()
        except RuntimeError:
            return "unknown"

    def _steps(self, node):
        """Ids of the node's slurmstepds: no children of its slurmd once they have detached, but of its environment."""
        marks = {f"{MARK}={self.folder}".encode(), f"{NODE_MARK}={node}".encode()}
        found = set()
        for name in os.listdir("/proc"):
            try:
                with open(f"/proc/{name}/comm", encoding="utf-8") as file:
                    if not file.read().startswith("slurmstepd"):
                        continue
                with open(f"/proc/{name}/environ", "rb") as file:
                    if marks <= set(file.read().split(b"\0")):
                        found.add(int(name))
            except OSError:
                continue  # it ended meanwhile, or is no process
        return found

    def job_processes(self, node, name):
        """Ids of the processes of the jobs on a node that run the program `name`."""
        steps = self._steps(node)
        parents = {pid: parent for pid, parent, _ in processes()} if steps else {}
        found = set()
        for pid in self._with_descendants(steps, parents) - steps:
            try:
                if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == name:
                    found.add(pid)
            except OSError:
                continue
        return found

    def freeze(self, node, name, least_bytes=0, seconds=30):
        """Waits until jobs on the node run the program `name`, and have filled as much memory, and stops them where
        they are; their ids."""
        frozen = set()

        def caught():
            for pid in self.job_processes(node, name):
                try:
                    with open(f"/proc/{pid}/statm", encoding="utf-8") as file:
                        if int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") < least_bytes:
                            continue
                    os.kill(pid, signal.SIGSTOP)
                    frozen.add(pid)
                except (OSError, IndexError):
                    pass  # it ended meanwhile
            return frozen

        self._wait(f"a {name} on {node}", caught, seconds, 0.005)
        return frozen

    @staticmethod
    def thaw(pids):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass

    def take_away(self, node):
        """As if the machine had died: its daemon and all that hangs below it is killed, then Slurm is told."""
        parents = {pid: parent for pid, parent, _ in processes()}
        for pid in self._with_descendants({self._id(f"slurmd-{node}")} | self._steps(node), parents):
            kill_hard(pid)
        self._reap()
        self.command("scontrol", "update", f"nodename={node}", "state=down", "reason=taken away")

    def give_back(self, node):
        self._slurmd(node)
        self._wait(f"node {node} to be back", lambda: self.node_state(node) in ("idle", "mixed", "allocated"))

    def stop(self):
        """Nothing that the cluster started is left. Daemons are asked first, so that their logs end well."""
        for name in [f"slurmd-{node}" for node in NODES] + ["slurmctld", "munged"]:
            pid = self._id(name)
            if pid is not None and pid in self._ours():
                try:
                    os.kill(pid, signal.SIGTERM)
                except ProcessLookupError:
                    pass
        limit = time.monotonic() + 5
        while True:
            self._reap()
            ours = self._ours()
            if not ours:
                return
            if time.monotonic() > limit:
                for pid in ours:
                    kill_hard(pid)
            if time.monotonic() > limit + 10:
                raise RuntimeError(f"processes {sorted(ours)} do not end")
            time.sleep(0.1)


def main(arguments):
    if len(arguments) == 2 and arguments[0] in ("start", "stop"):
        cluster = Cluster(arguments[1])
        if arguments[0] == "stop":
            cluster.stop()
            return 0
        if missing_programs():
            print(f"cluster.py: not here: {', '.join(missing_programs())}; "
                  "apt-get install slurmctld slurmd slurm-client munge", file=sys.stderr)
            return 1
        cluster.start()
        for name, value in cluster.environment().items():
            print(f"export {name}='{value}'")
        return 0
    if len(arguments) == 3 and arguments[0] in ("down", "up") and arguments[2] in NODES:
        cluster = Cluster(arguments[1])
        (cluster.take_away if arguments[0] == "down" else cluster.give_back)(arguments[2])
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except RuntimeError as error:
        print(f"cluster.py: {error}", file=sys.stderr)
        sys.exit(1)
