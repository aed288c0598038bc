"""A server of PostgreSQL in a folder of a test, on a socket there."""
import glob
import os
import shutil
import subprocess
import time


def missing():
    """Why this machine can run none; empty: it can."""
    if not glob.glob("/usr/lib/postgresql/*/bin/postgres"):
        return "no server of PostgreSQL is installed (package postgresql)"
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        return "there is no setpriv to run the server as the user postgres"
    return ""


class Server:
    def __init__(self, case, folder):
        """With an empty database 'fleet'; ends with the test."""
        self.case, self.folder, self.server, self.prefix = case, folder, None, []
        self.programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        os.mkdir(folder, 0o700)
        if os.geteuid() == 0:
            for path in (os.path.dirname(folder), folder):
                os.chmod(path, 0o755)
            shutil.chown(folder, "postgres", "postgres")
            self.prefix = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        self.run("initdb", "-D", folder + "/data", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync")
        case.addCleanup(self.kill)
        self.start()
        self.run("createdb", "-h", folder, "-U", "postgres", "fleet")
        self.url = f"postgresql://postgres:s3cret@/fleet?host={folder}"

    def run(self, program, *arguments):
        done = subprocess.run([*self.prefix, os.path.join(self.programs, program), *arguments], capture_output=True, text=True, cwd="/")
        self.case.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def start(self):
        """Returns when it answers; backends of one that was killed take a moment to go."""
        for _ in range(600):
            if self.server is None or self.server.poll() is not None:
                self.server = subprocess.Popen([*self.prefix, os.path.join(self.programs, "postgres"), "-D", self.folder + "/data", "-k",
                                                self.folder, "-h", "", "-c", "fsync=off"], cwd="/", stdout=subprocess.DEVNULL,
                                               stderr=subprocess.DEVNULL)
            ready = subprocess.run([os.path.join(self.programs, "pg_isready"), "-q", "-h", self.folder], cwd="/")
            if ready.returncode == 0 and self.server.poll() is None:
                return
            time.sleep(0.1)
        self.case.fail("the server of PostgreSQL did not start")

    def kill(self):
        if self.server is not None:
            self.server.kill()
            self.server.wait()
