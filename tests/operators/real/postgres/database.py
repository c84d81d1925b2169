"""One MyDatabase on a real PostgreSQL, as its users and its owner have it."""

import base64

from tests.kubectl import KubectlError

API = "example.com/v1alpha1"
SOCKETS = "/var/run/postgresql"
NOT_YET = (
    "could not translate host name", "Connection refused", "No route to host", "Connection timed out",
    "the database system is starting up", "the database system is shutting down", "not yet accepting connections",
    "container not found", "unable to upgrade connection",
)  # fmt: skip
"""What is said where a command has had no effect yet, and may have one a moment later."""

_CLIENT = "psql"
_WRITES = """trap 'exit 0' TERM
n=0
while true; do
  n=$((n+1))
  if psql "host=db user=shop dbname=orders connect_timeout=2" -qc "insert into $0 values ($n)" 2>/dev/null; then echo $n; fi
  sleep 0.05
done
"""


class Db:
    """One MyDatabase with a user and a database, and a daemon that looks after it."""

    def __init__(self, real, daemon, version, name="db"):
        self.real, self.daemon, self.version, self.name = real, daemon, version, name

    def manifest(self, **spec):
        whole = {
            "version": self.version, "storage": {"size": "1Gi"}, "users": [{"name": "shop"}],
            "databases": [{"name": "orders", "owner": "shop"}], **spec,
        }  # fmt: skip
        metadata = {"name": self.name, "namespace": self.real.namespace}
        return {"apiVersion": API, "kind": "MyDatabase", "metadata": metadata, "spec": whole}

    def apply(self, **spec):
        self.real.apply(self.manifest(**spec))

    def other(self, name, **bootstrap):
        """Another one, which begins so."""
        found = Db(self.real, self.daemon, self.version, name)
        found.apply(bootstrap=bootstrap)
        return found

    # --- what is said of it ---------------------------------------------------------------------------

    @property
    def cr(self):
        return self.real.get(f"/apis/{API}/namespaces/{self.real.namespace}/mydatabases/{self.name}")

    @property
    def status(self):
        return self.cr["status"]

    def condition(self, type_):
        found = self.cr.get("status", {}).get("conditions", [])
        return next((each for each in found if each["type"] == type_), {"status": "", "message": "", "reason": ""})

    def is_settled(self):
        cr = self.cr
        is_newest = cr.get("status", {}).get("observedGeneration") == cr.get("metadata", {}).get("generation")
        return is_newest and self.condition("Ready")["status"] == "True"

    def settled(self):
        self.real.eventually(self.is_settled, f"{self.name} is as specified")
        return self

    def primary(self):
        """The slot of who takes writes, by the status."""
        return self.cr.get("status", {}).get("currentPrimary")

    def replica(self):
        """The slot of the one replica, by the status."""
        (found,) = (each["pod"] for each in self.status["instances"] if each["pod"] != self.primary())
        return found

    def is_led_by(self, slot):
        """Wait until somebody has taken over."""
        self.real.eventually(lambda: self.primary() == slot, f"{slot} has taken over")

    def kept_volumes(self):
        return [each["claim"] for each in self.status.get("keptVolumes", ())]

    def quorums(self):
        return [each["members"] for each in self.status.get("synchronous", {}).get("quorums", [])]

    # --- what its user is answered --------------------------------------------------------------------

    def password(self, of="user-shop"):
        secret = ("get", "secret", f"{self.name}-{of}", "-n", self.real.namespace)
        found = self.real.eventually(lambda: self.real.kubectl.json(*secret), f"there is a password of {of}")
        return base64.b64decode(found["data"]["password"]).decode()

    def sql(self, text, *, password=None, at=""):
        """What the user is answered through the Service."""
        login = f"PGPASSWORD={self.password() if password is None else password}"
        asked = ["psql", "-h", at or self.name, "-U", "shop", "-d", "orders", "-v", "ON_ERROR_STOP=1", "-Atqc", text]
        # A Service leads to who was the primary until others hear of who is.
        not_yet = NOT_YET if at else (*NOT_YET, "read-only transaction")
        return self.outside("env", login, *asked, not_yet=not_yet).split()

    def refuses(self, password, how="password authentication failed"):
        try:
            self.sql("select 1", password=password)
        except KubectlError as error:
            return how in str(error)
        return False

    def filled(self):
        """Make the table rows anew, with a thousand of them."""
        self.sql(
            "drop table if exists rows; create table rows (n int); insert into rows select generate_series(1, 1000)"
        )
        return self

    def outside(self, *command, not_yet=NOT_YET):
        """What a command says in a pod that isn't an instance of any database."""
        if not self.real.pod(_CLIENT):
            image, pod = f"postgres:{self.version}", {"terminationGracePeriodSeconds": 0}
            self.real.run("sleep", "infinity", name=_CLIENT, image=image, pod=pod)
            self.real.ready(_CLIENT)
        return self._said(_CLIENT, "main", command, not_yet)

    # --- its instances from within --------------------------------------------------------------------

    def inside(self, pod, *command, not_yet=NOT_YET):
        """What a command in the pod of an instance says."""
        return self._said(pod, "postgres", command, not_yet)

    def asked(self, pod, sql, database="postgres"):
        """What the superuser is answered in the pod of an instance."""
        return self.inside(pod, "psql", "-h", SOCKETS, "-U", "postgres", "-d", database, "-Atc", sql).strip()

    def stands_by(self, pod):
        return self.asked(pod, "select pg_is_in_recovery()") == "t"

    def rows(self, pod, table="rows"):
        return sorted(int(each) for each in self.asked(pod, f"select n from {table}", "orders").split())  # noqa: S608 - a name of ours

    def _said(self, pod, container, command, not_yet):
        """What a command says. A Service may take a moment until it leads to a pod that is ready."""

        def said():
            try:
                return [self.real.kubectl("exec", "-n", self.real.namespace, pod, "-c", container, "--", *command)]
            except KubectlError as error:
                if any(each in str(error) for each in not_yet):
                    raise
                return error

        found = self.real.eventually(said, f"{pod} answers")
        if isinstance(found, KubectlError):
            raise found
        return found[0]

    # --- its parts ------------------------------------------------------------------------------------

    def uid(self, pod):
        return self.real.pod(pod).get("metadata", {}).get("uid")

    def replaced(self, pod, uid):
        """Wait until there is another pod of this name than that with *uid*."""
        self.real.eventually(lambda: self.uid(pod) not in {uid, None}, f"the pod {pod} is replaced")

    def begun(self, pod):
        """How the server of a pod was begun: with what was there, by a copy, by a rewind."""
        env = self.real.pod(pod)["spec"]["initContainers"][0]["env"]
        return next(each["value"] for each in env if each["name"] == "BEGIN")

    def claims(self):
        """The claims of its instances, present and former, by slot."""
        items = self.real.kubectl.json("get", "pvc", "-n", self.real.namespace)["items"]
        found = {each["metadata"]["name"].removesuffix("-data"): each for each in items}
        return {
            slot: each for slot, each in found.items() if slot.rpartition("-")[0] == self.name and slot[-1].isdigit()
        }

    def owners(self):
        """The owners of the claims of its instances, by slot."""
        return [each["metadata"].get("ownerReferences") for _, each in sorted(self.claims().items())]

    def bind(self):
        """Give its claims an owner, as daemons did before they kept them."""
        cr, ours = self.cr, "example.com/"
        owner = {"apiVersion": API, "kind": "MyDatabase", "name": self.name, "uid": cr["metadata"]["uid"]}
        for claim in self.claims().values():
            metadata, asked = claim["metadata"], ("accessModes", "resources")
            noted = {name: text for name, text in metadata.get("annotations", {}).items() if name.startswith(ours)}
            body = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    **{name: metadata[name] for name in ("name", "namespace", "labels")},
                    "annotations": noted,
                    "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
                },
                "spec": {name: claim["spec"][name] for name in asked},
            }
            as_module = ("--server-side", "--field-manager=kubectl-reconcile-mydatabase", "--force-conflicts")
            self.real.kubectl.apply(body, *as_module)

    # --- what is done to it ---------------------------------------------------------------------------

    def hand_over(self, to):
        """Ask for another primary, as somebody does with kubectl."""
        wish = f"example.com/switchover-to={to}"
        self.real.kubectl("annotate", "mydatabase", self.name, "-n", self.real.namespace, wish, "--overwrite")

    def kill(self, pod):
        self.real.sandbox.pods.signal(self.real.namespace, pod, "KILL")

    def spoil(self, pod):
        """Leave data as whoever rewinds it leaves it, if killed: its server never begins with that again."""
        self.inside(pod, "sh", "-c", 'touch "$PGDATA.rewinding"')

    def let_nobody_in(self, pod):
        """Have a server wait for its sessions to end, for ever, and let nobody else in."""
        self.inside(pod, "sh", "-c", 'kill -TERM "$(head -n 1 "$PGDATA/postmaster.pid")"')

    def hold_session(self, name):
        """Begin a pod with a session that doesn't end while it is let, and return once the primary has it."""
        env = [{"name": "PGPASSWORD", "value": self.password()}]
        holds = ["sh", "-c", "psql 'host=db user=shop dbname=orders' -c 'select pg_sleep(1000)'"]
        pod = {"terminationGracePeriodSeconds": 0, "restartPolicy": "OnFailure"}
        self.real.run(*holds, name=name, image=f"postgres:{self.version}", env=env, pod=pod)
        sleeping = "select count(*) from pg_stat_activity where usename = 'shop' and query like '%pg_sleep%'"
        self.real.eventually(lambda: int(self.asked(self.primary(), sleeping)) >= 1, "a session is open")

    def end(self):
        self.real.kubectl(
            "delete", "mydatabase", self.name, "-n", self.real.namespace, "--timeout=300s", "--ignore-not-found"
        )

    def end_while_nobody_looks(self):
        """Delete it as some tools do, what it owns first, while no daemon runs; one comes back once its pods are gone."""
        self.daemon.kill()
        pods = [each["pod"] for each in self.status["instances"]]
        how = ("--cascade=foreground", "--wait=false", "-n", self.real.namespace)
        self.real.kubectl("delete", "mydatabase", self.name, *how)
        self.real.gone(*pods)
        self.daemon.start()
        self.real.eventually(lambda: not self.cr, f"{self.name} is gone")

    def lose(self):
        """Delete it, and all volumes that are there."""
        self.end()
        self.real.kubectl("delete", "pvc", "--all", "-n", self.real.namespace, "--timeout=300s")


class Writer:
    """A client in a pod that writes one number after the other into a table of its own, and says which were acknowledged."""

    def __init__(self, db, table):
        self.real, self.pod, self.table = db.real, f"writes-{table}", table
        db.sql(f"create table {table} (n int)")
        env = [{"name": "PGPASSWORD", "value": db.password()}]
        image, pod = f"postgres:{db.version}", {"terminationGracePeriodSeconds": 0}
        self.real.run("sh", "-c", _WRITES, table, name=self.pod, image=image, env=env, pod=pod)
        self.goes_on()

    def acknowledged(self):
        """The numbers that were acknowledged so far."""
        lines = self.real.eventually(lambda: [self.real.logs(self.pod)], f"{self.pod} runs")[0]
        return [int(each) for each in lines]

    def goes_on(self):
        """Wait until more is acknowledged; returns how much was before that."""
        before = len(self.acknowledged())
        self.real.eventually(lambda: len(self.acknowledged()) > before + 3, f"{self.pod} is acknowledged rows")
        return before

    def end(self):
        """End it; returns all that was acknowledged."""
        found = self.acknowledged()
        self.real.delete(self.pod, "--wait=false")
        return found
