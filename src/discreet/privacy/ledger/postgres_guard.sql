CREATE TABLE {table} (
  number bigint PRIMARY KEY,
  previous text NOT NULL UNIQUE,
  body text NOT NULL,
  hash text NOT NULL UNIQUE,
  written_by text NOT NULL DEFAULT session_user
);

-- With the rights of whoever writes. A name in the body must be the writer's; a body that says a thing twice is
-- none of ours; only the end of the chain can be written.
CREATE FUNCTION {guard}() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $guard$
DECLARE
  event jsonb;
  kind text;
  last record;
  named record;
BEGIN
  IF TG_OP <> 'INSERT' THEN
    RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = '{append_only}';
  END IF;
  event := NEW.body::jsonb;
  kind := event ->> 'kind';
  NEW.written_by := session_user;
  IF (kind IS NULL OR kind NOT IN ('genesis', 'commit')) AND event ->> 'who' IS DISTINCT FROM session_user::text
    OR (SELECT count(*) FROM json_object_keys(NEW.body::json)) <> (SELECT count(*) FROM jsonb_object_keys(event)) THEN
    RAISE EXCEPTION 'an entry names its writer' USING ERRCODE = '{forged}';
  END IF;
  IF kind IS NULL
    OR kind NOT IN ('genesis', 'budget', 'reserve', 'commit', 'abandon', 'record', 'derive', 'restore') THEN
    RAISE EXCEPTION 'no such kind of entry' USING ERRCODE = '{not_linked}';
  END IF;
  IF kind IN ('reserve', 'record', 'derive', 'commit') THEN
    EXECUTE format('SELECT count(*) FILTER (WHERE event ->> ''kind'' = ''commit'') AS commits,
        count(*) FILTER (WHERE event ->> ''kind'' <> ''commit'') AS others,
        max(written_by) FILTER (WHERE event ->> ''kind'' = ''reserve'') AS reserver
      FROM (SELECT body::jsonb AS event, written_by FROM %s) entries
      WHERE event ->> ''kind'' IN (''reserve'', ''record'', ''derive'', ''commit'') AND event ->> ''release'' = $1',
      TG_RELID::regclass) INTO named USING event ->> 'release';
    IF kind = 'commit' AND (named.commits > 0 OR named.reserver IS DISTINCT FROM session_user::text)
      OR kind <> 'commit' AND named.others > 0 THEN
      RAISE EXCEPTION 'a release is reserved once, and committed by who reserved it' USING ERRCODE = '{forged}';
    END IF;
  END IF;
  IF kind = 'derive' THEN
    EXECUTE format('SELECT count(*) AS sources FROM (SELECT body::jsonb AS event FROM %s) entries
      WHERE event ->> ''kind'' IN (''commit'', ''derive'') AND event ->> ''release'' = $1
        AND event -> ''kept'' <> ''{{}}''::jsonb', TG_RELID::regclass) INTO named USING event ->> 'of';
    IF named.sources = 0 THEN
      RAISE EXCEPTION 'only what was kept is derived from' USING ERRCODE = '{forged}';
    END IF;
  END IF;
  IF kind IN ('genesis', 'budget', 'restore') AND NOT pg_has_role(
      session_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'MEMBER') THEN
    RAISE EXCEPTION 'budgets are set, and ledgers restored, by the owner of the ledger' USING ERRCODE = '{not_owner}';
  END IF;
  EXECUTE format('SELECT number, hash FROM %s ORDER BY number DESC LIMIT 1', TG_RELID::regclass) INTO last;
  IF NEW.number IS DISTINCT FROM coalesce(last.number, 0) + 1
    OR NEW.previous IS DISTINCT FROM coalesce(last.hash, '')
    OR NEW.hash IS DISTINCT FROM encode(sha256(convert_to(
      NEW.number || chr(10) || NEW.previous || chr(10) || NEW.body, 'UTF8')), 'hex') THEN
    RAISE EXCEPTION 'an entry continues the chain' USING ERRCODE = '{not_linked}';
  END IF;
  RETURN NEW;
END $guard$;

CREATE TRIGGER discreet_guard_rows BEFORE INSERT ON {table}
  FOR EACH ROW EXECUTE FUNCTION {guard}();

CREATE TRIGGER discreet_guard_table BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}
  FOR EACH STATEMENT EXECUTE FUNCTION {guard}()
