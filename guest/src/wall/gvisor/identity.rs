//! Becoming the user. The uid is a number of gVisor's own kernel and means nothing on the host.

use rustix::thread::{
    CapabilitySets, Gid, Uid, capabilities, set_capabilities, set_keep_capabilities, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

use crate::wall::{
    plan::Plan,
    report::Report,
    step::{During, SealError, Step},
};

/// The step after this one has to empty the bounding set, which takes a capability.
pub fn keep_capabilities() -> Result<(), SealError> {
    set_keep_capabilities(true).during(Step::Identity, "keeping capabilities for the next step")
}

pub fn become_user(plan: &Plan<'_>, report: &mut Report) -> Result<(), SealError> {
    let (uid, gid) = (Uid::from_raw(plan.seal.uid), Gid::from_raw(plan.seal.gid));
    set_thread_groups(&[]).during(Step::Identity, "groups")?;
    set_thread_res_gid(gid, gid, gid).during(Step::Identity, "the group")?;
    set_thread_res_uid(uid, uid, uid).during(Step::Identity, "the user")?;
    let kept = capabilities(None).during(Step::Identity, "capabilities")?;
    let raised = CapabilitySets { effective: kept.permitted, ..kept };
    set_capabilities(None, raised).during(Step::Identity, "capabilities for the next step")?;
    report.holds("groups", "setgroups", "no supplementary group");
    Ok(())
}
