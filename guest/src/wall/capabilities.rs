//! Giving up every capability in every set, for good.

use rustix::{
    io::Errno,
    thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets},
};

use super::{
    report::Report,
    step::{During, SealError, Step},
};
use crate::proto::link::Surroundings;

pub fn drop_all(surroundings: Surroundings, report: &mut Report) -> Result<(), SealError> {
    // gVisor knows neither ambient capabilities nor secure bits: there, nothing can be regained by them either.
    let is_linux = surroundings != Surroundings::Gvisor;
    if is_linux {
        rustix::thread::clear_ambient_capability_set().during(Step::Capabilities, "ambient set")?;
    }
    // A call is dear in gVisor, and there the bounding set is what was given; whether it is empty is looked at in the end.
    let given = match is_linux {
        true => CapabilitySet::from_bits_retain(u64::MAX),
        false => rustix::thread::capabilities(None).during(Step::Capabilities, "what was given")?.permitted,
    };
    for number in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if !given.contains(capability) {
            continue;
        }
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // The first number that this kernel does not know.
            Err(Errno::INVAL) if number > 0 => break,
            Err(errno) => return Err(Step::Capabilities.error(format!("bounding set, capability {number}: {errno}"))),
        }
    }
    let locked = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    if is_linux {
        rustix::thread::set_capabilities_secure_bits(locked).during(Step::Capabilities, "secure bits")?;
    }
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets).during(Step::Capabilities, "capability sets")?;
    report.holds("capabilities", "capset", "none, in any set");
    Ok(())
}
