"""The teams, budgets and scaled settings that the tests of this ring play with."""

ANA, BEN, CLEO = "sbtest-ana", "sbtest-ben", "sbtest-cleo"
SIDECAR = "sbtest-sidecar"
"""A plain Linux user who may become a Slurm operator, and sweep."""

BUDGETS = f"""\
cluster: {{name}}
accounts:
  institute:
    gpus: 32
    accounts:
      vision:   {{{{gpus: 16, users: [{ANA}]}}}}
      language: {{{{gpus: 15, users: [{BEN}]}}}}
      robotics: {{{{gpus: 1,  users: [{CLEO}]}}}}
"""

SETTINGS = """
    [window]
    length = "10min"
    [jobs]
    min_runtime = "10s"
    [qos]
    preempt_exempt_time = "4s"
    grace_time = "0s"
    [sweep]
    beat = "1s"
    patience = "0s"
    grace = "2s"
    margin = 0.01
    cooldown = "60s"
"""
