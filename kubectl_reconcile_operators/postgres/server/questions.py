"""What servers are asked, in SQL, and the shapes of their answers.

Text is put in by whoever asks, quoted.
"""

from __future__ import annotations

from kubectl_reconcile_operators.postgres.access.driver import CERTIFICATE, KEY

INSTANCE = """select json_build_object(
  'recovery', pg_is_in_recovery(),
  'system', (select system_identifier::text from pg_control_system()),
  'timeline', greatest((select timeline_id from pg_control_checkpoint()),
      (select max(('x' || left(name, 8))::bit(32)::int) from pg_ls_waldir() where name ~ '^[0-9A-F]{{24}}$')),
  'checkpointed', (select timeline_id from pg_control_checkpoint()),
  'lsn', case when pg_is_in_recovery()
      then greatest(coalesce(pg_last_wal_receive_lsn(), '0/0'), coalesce(pg_last_wal_replay_lsn(), '0/0'))::text else '' end,
  'receives', exists (select from pg_stat_wal_receiver where status = 'streaming') or exists (select from pg_stat_activity
      where backend_type = 'startup' and coalesce(wait_event, '') not in ('RecoveryWalStream', 'RecoveryRetrieveRetryInterval', 'RecoveryPause')),
  'flushed', case when pg_is_in_recovery() then '' else pg_current_wal_flush_lsn()::text end,
  'checkpoint', case when pg_is_in_recovery() then '' else (select checkpoint_lsn::text from pg_control_checkpoint()) end,
  'synchronous', current_setting('synchronous_standby_names'),
  'version', current_setting('server_version'),
  'major', (current_setting('server_version_num')::int / 10000)::text,
  'tls', json_build_object('on', current_setting('ssl') = 'on', 'seen', {files}, 'stale', coalesce({changed}, false)),
  'hba', coalesce(encode(sha256(pg_read_binary_file(current_setting('hba_file'), 0, 65536, true)), 'hex'), ''),
  'unloaded', pg_conf_load_time() < (pg_stat_file('postgresql.auto.conf')).modification,
  'settings', (select coalesce(json_object_agg(name, setting), '{{}}') from pg_file_settings where sourcefile like '%/postgresql.auto.conf'),
  'restarts', (select coalesce(json_agg(name order by name), '[]') from pg_settings where context = 'postmaster'
      and (name = any (array[{names}]::text[]) or name in (select name from pg_file_settings where sourcefile like '%/postgresql.auto.conf'))),
  'limits', (select json_object_agg(name, setting::int) from pg_settings where name in
      ('max_connections', 'max_worker_processes', 'max_prepared_transactions', 'max_locks_per_transaction')),
  'pending', (select coalesce(json_agg(name order by name), '[]') from pg_settings where pending_restart))"""
WITHIN = """select json_build_object(
  'roles', (select coalesce(json_object_agg(rolname, json_build_object('verifier', rolpassword, 'login', rolcanlogin,
      'superuser', rolsuper, 'createDatabase', rolcreatedb, 'replication', rolreplication,
      'rewinds', has_function_privilege(rolname, 'pg_read_binary_file(text, bigint, bigint, boolean)', 'execute'))), '{{}}') from pg_authid where rolname = any (array[{users}]::name[])),
  'databases', (select coalesce(json_object_agg(datname, pg_get_userbyid(datdba)), '{{}}') from pg_database
      where datname = any (array[{databases}]::name[])),
  'followers', (select coalesce(json_object_agg(application_name, json_build_object('state', state,
      'lag', coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn), 0))), '{{}}') from pg_stat_replication where application_name <> 'copy'),
  'slots', (select coalesce(json_object_agg(slot_name, json_build_object('active', active, 'status', wal_status)), '{{}}')
      from pg_replication_slots where slot_type = 'physical'),
  'forks', (select coalesce(json_object_agg(line[1], line[2]), '{{}}') from regexp_matches(
      pg_read_file('pg_wal/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) || '.history', 0, 65536, true),
      '^\\s*([0-9]+)\\s+([0-9A-F]+/[0-9A-F]+)', 'gn') line))"""
ACCESS = """do $$ begin
  execute format('copy (select unnest(string_to_array(%L, chr(10)))) to %L', {text}, current_setting('hba_file'));
  perform pg_reload_conf();
end $$"""
"""The file is written and read again in one go, whatever happens to whoever asks for it."""
INSTANCE_SHAPE = {
    **dict.fromkeys(("system", "version", "major", "lsn", "flushed", "checkpoint", "synchronous", "hba"), str), "recovery": bool, "receives": bool, "unloaded": bool, "timeline": int, "checkpointed": int,
    **dict.fromkeys(("settings", "limits", "tls"), dict), **dict.fromkeys(("restarts", "pending"), list),
}  # fmt: skip
WITHIN_SHAPE = dict.fromkeys(("roles", "databases", "followers", "slots", "forks"), dict)
TLS_THERE = " and ".join(f"(pg_stat_file('{file}', true)).size is not null" for file in (CERTIFICATE, KEY))
TLS_STALE = f"pg_conf_load_time() < (pg_stat_file('{KEY}', true)).modification + interval '1 s'"
"""Files have their time to the second: what was read within the second in which they came may be what was there before."""
MOVING = ("lsn", "receives", "closed")
LOG_END = """select encode(pg_read_binary_file('pg_wal/' || {name}, greatest(till - {most}, 0), least(till, {most}), true), 'hex')
  from (select (ends - 1) % size + 1 as till, (ends - 1) / size as number, 4294967296 / size as each
    from (select {end}::bigint as ends, pg_size_bytes(current_setting('wal_segment_size')) as size) sizes) place"""
LOG_NAME = "lpad(upper(to_hex({timeline}::bigint)), 8, '0') || lpad(upper(to_hex(number / each)), 8, '0') || lpad(upper(to_hex(number % each)), 8, '0')"
REWINDING = (
    "pg_catalog.pg_ls_dir(text, boolean, boolean)", "pg_catalog.pg_stat_file(text, boolean)", "pg_catalog.pg_read_binary_file(text)",
    "pg_catalog.pg_read_binary_file(text, bigint, bigint, boolean)",
)  # fmt: skip
"""What pg_rewind asks of the server that it rewinds to."""
ROOM = "with taken as materialized (select repeat('x', 8192) as block from generate_series(1, {blocks})) select count(block) from taken"
"""Writes so many blocks to a temporary file, which standbys may, too: PostgreSQL doesn't say otherwise how much room there is."""
BLOCKS, BLOCKS_TO_TAKE_OVER = "128", "(2 * pg_size_bytes(current_setting('wal_segment_size')) / 8192)::int"
"""A mebibyte; and as much as two segments of log, of one who may be promoted: it begins another one then."""
DISK_FULL, NO_SESSION = "53100", "could not write init file"
"""What is said where there is no room; the latter of sessions that aren't let in, without a code of its own."""
LOOKING = {
    "default_transaction_read_only": "on",
    "statement_timeout": "2500",
    "work_mem": "64",
    "temp_file_limit": "-1",
    "temp_tablespaces": "",
    "log_temp_files": "-1",
    "log_min_messages": "fatal",
}
ACTING = {
    "default_transaction_read_only": "off",
    "statement_timeout": "20000",
    "synchronous_commit": "local",
    "log_statement": "none",
    "log_min_duration_statement": "-1",
    "log_min_error_statement": "panic",
}
