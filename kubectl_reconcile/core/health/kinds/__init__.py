"""What popular kinds say of their health: one file of rules per API group or operator, with examples, and ``kinds.json`` made from them.

A file names the *groups* and the page of *docs* that its rules come from, then the *kinds*. A group may begin with ``*.``; A kind may be ``*``, which is any, or begin with it.

```yaml
groups: [cert-manager.io]
docs: https://cert-manager.io/docs/usage/certificate/
kinds:
  - kinds: [Certificate]
    rules:
      - InProgress: {Issuing: "True"}
      - Failed: {Ready: "False"}

Examples:
      - InProgress: {}
      - Failed: {Ready: "False", Ready.reason: DoesNotExist}
```

The first of the *rules* that holds decides, else the general rule. A rule is a verdict and what must be found for it; all of it must.
A path starts at the status, or at ``spec`` or ``metadata``; a name with a capital is a condition: ``Ready`` its status, ``Ready.reason`` its
reason. ``*`` is each item of a list or map, ``#`` how many there are, ``[a.b/c]`` a name with dots. What may be asked of a path:

| asked | holds where |
|---|---|
| `Ready`, `[Ready, Green]`, `"Waiting*"` | one of what is found there is one of these; case doesn't count |
| `null` | nothing is there, or what is empty |
| `{not: Ready}`, `{not: [A, B]}` | one of the values found there isn't one of these |
| `{below: spec.replicas, else: 1}`, `{above: 0}` | it is a lower, higher number than another field or this one; what isn't there counts 0, or as *else* says; those of a list add up |
| `{equals: spec.version}`, `{differs: metadata.generation}` | it is the same as another field, or not |
| `{older: true}` | it is the number of another generation than the object's |
| `{short: true}` | it is a text such as `1/3` whose first number is lower |

A rule that asks nothing of the status is asked first, so that what is paused is Suspended however old its status is. Everything else comes
after what holds for all kinds: an observedGeneration that is behind, ``Reconciling``, ``Stalled``. A condition that speaks of an older generation
than the object's is in progress, whatever it says. An object without a status is in progress, since a kind with rules has a controller;
*silent* gives another verdict. *say* is a path to the message, where it isn't that of the condition, or ``status.message``.

Pure: this folder is data; the program reads ``kinds.json``, the rules of a group when an object of it is first judged.
"""
