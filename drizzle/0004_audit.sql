-- The audit log is appended to and never changed, whoever asks. What was kept long enough goes, but only in a transaction
-- that says so, and never an entry of the last day.
CREATE FUNCTION runplane.keep_audit_entries() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND current_setting('runplane.deletes_old_audit_entries', true) = 'on' THEN
    IF OLD.at < runplane.clock() - interval '1 day' THEN
      RETURN OLD;
    END IF;
  END IF;
  RAISE EXCEPTION 'entries of the audit log are not changed' USING ERRCODE = 'insufficient_privilege';
END
$$;
--> statement-breakpoint
CREATE TRIGGER audit_entries_are_kept BEFORE UPDATE OR DELETE ON runplane.audit_entries
FOR EACH ROW EXECUTE FUNCTION runplane.keep_audit_entries();
--> statement-breakpoint
CREATE TRIGGER audit_log_is_kept BEFORE TRUNCATE ON runplane.audit_entries
FOR EACH STATEMENT EXECUTE FUNCTION runplane.keep_audit_entries();
